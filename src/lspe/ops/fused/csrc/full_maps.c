/* The maps of layers of full attention as products of matrices take them, and the way back of their gradients. */
#include "full_layers.h"

static struct rows map_of(const struct full *stack, const struct bundle *bundle, integer layer, integer part)
{
    return stack->call->layer[layer].map[bundle->first + part * bundle->every];
}

static integer bundle_size(const struct bundle *bundle) { return in_lines(bundle->rows * bundle->columns); }

static integer layer_panels_size(const struct full *stack)
{
    integer size = in_lines(BIASES * stack->hidden);
    for (integer b = 0; b < BUNDLES; b++)
        size += bundle_size(&stack->bundle[b]);
    return size;
}

integer panels_size(const struct full *stack) { return stack->call->count * layer_panels_size(stack); }

/* [segments, parts] in panels. */
static void pack_bundle_forward(const struct full *stack, integer layer, const struct bundle *bundle, real *to)
{
    const integer outputs = padded_to_16(bundle->outputs), inputs = padded_to_16(bundle->inputs);
    for (integer part = 0; part < bundle->parts; part++) {
        const struct rows map = map_of(stack, bundle, layer, part);
        for (integer first = 0; first < outputs; first += LANES) {
            const integer left = bundle->outputs - first, count = left < 0 ? 0 : left < LANES ? left : LANES;
            for (integer segment = 0; segment < bundle->segments; segment++)
                for (integer k = 0; k < bundle->inputs; k++) {
                    real *into = in_panels(to, bundle->columns, bundle->rows, segment * inputs + k,
                                           part * outputs + first);
                    for (integer c = 0; c < count; c++)
                        into[c] = row_at(map, first + c)[segment * bundle->inputs + k];
                }
        }
    }
}

/* [parts, segments] in panels. */
static void pack_bundle_backward(const struct full *stack, integer layer, const struct bundle *bundle, real *to)
{
    const integer outputs = padded_to_16(bundle->outputs), inputs = padded_to_16(bundle->inputs);
    for (integer part = 0; part < bundle->parts; part++)
        for (integer output = 0; output < bundle->outputs; output++)
            for (integer segment = 0; segment < bundle->segments; segment++) {
                const real *from = row_at(map_of(stack, bundle, layer, part), output) + segment * bundle->inputs;
                for (integer k = 0; k < bundle->inputs; k += LANES) {
                    const integer left = bundle->inputs - k;
                    memcpy(in_panels(to, bundle->rows, bundle->columns, part * outputs + output, segment * inputs + k),
                           from + k, (size_t)(left < LANES ? left : LANES) * sizeof(real));
                }
            }
}

static const integer BUNDLE_OF_BIAS[BIASES] = {[O_BIAS] = O, [O_P_BIAS] = O_P, [W1_BIAS] = W1, [W2_BIAS] = W2};

/* Padding is zeros, and there is some only where widths are odd. */
static void pack_layer(const struct full *stack, integer layer, _Bool backward)
{
    for (integer b = 0; b < BUNDLES; b++) {
        const struct bundle *bundle = &stack->bundle[b];
        real *to = stack->panels[layer][b];
        if (stack->width % 16 != 0)
            memset(to, 0, (size_t)(bundle->rows * bundle->columns) * sizeof(real));
        (backward && b != EDGES ? pack_bundle_backward : pack_bundle_forward)(stack, layer, bundle, to);
    }
    real *biases = stack->biases[layer];
    memset(biases, 0, (size_t)(BIASES * stack->hidden) * sizeof(real));
    for (integer b = 0; b < BIASES; b++) {
        const struct bundle *bundle = &stack->bundle[BUNDLE_OF_BIAS[b]];
        if (bundle->parts > 0)
            memcpy(biases + b * stack->hidden, stack->call->layer[layer].bias[b].at,
                   (size_t)bundle->outputs * sizeof(real));
    }
}

static void pack_forward_task(void *stack, integer layer) { pack_layer(stack, layer, 0); }
static void pack_backward_task(void *stack, integer layer) { pack_layer(stack, layer, 1); }

void pack_panels(struct full *stack, real *room, _Bool backward)
{
    for (integer layer = 0; layer < stack->call->count; layer++) {
        stack->biases[layer] = room;
        room += in_lines(BIASES * stack->hidden);
        for (integer b = 0; b < BUNDLES; b++) {
            stack->panels[layer][b] = room;
            room += bundle_size(&stack->bundle[b]);
        }
    }
    run_tasks(stack->call->threads, stack->call->count, backward ? pack_backward_task : pack_forward_task, stack);
}

integer edge_features_size(const struct full *stack)
{
    return in_lines(stack->rows * stack->padded) + in_lines(stack->rows * stack->streams * stack->padded)
           + in_lines(stack->streams * stack->padded);
}

real *take_edge_features(struct full *stack, real *room)
{
    const struct rows edge = stack->call->edge, copy = rows_of(room, stack->rows, stack->width, stack->padded);
    stack->edge = room;
    stack->edge_maps = stack->edge + in_lines(stack->rows * stack->padded);
    stack->channel = stack->edge_maps + in_lines(stack->rows * stack->streams * stack->padded);
    for (integer row = 0; row < stack->rows; row++)
        memcpy(row_at(copy, row), row_at(edge, row), (size_t)stack->width * sizeof(real));
    clear_padding(copy);
    return stack->channel + in_lines(stack->streams * stack->padded);
}

void map_edge_features(struct full *stack)
{
    const struct full_layers *call = stack->call;
    const integer padded = stack->padded, row = stack->streams * padded;
    product(call->threads, stack->rows, row, padded, (struct matrix){stack->edge, padded},
            stack->panels[stack->layer][EDGES], (struct matrix){NULL, 0}, stack->edge_maps, row);
    for (integer s = 0; s < stack->streams; s++) {
        const struct rows map = call->layer[stack->layer].map[E_ADDED + s * MAPS_A_STREAM];
        for (integer o = 0; o < stack->width; o++) {
            real sum = 0;
            for (integer c = 0; c < stack->width; c++)
                sum += row_at(map, o)[c] * call->added.at[c];
            stack->channel[s * padded + o] = sum;
        }
    }
}

integer parameters_count(const struct full *stack)
{
    integer count = 4 * stack->width;
    for (integer b = 0; b < BUNDLES; b++) {
        const struct bundle *bundle = &stack->bundle[b];
        count += bundle->parts * bundle->outputs * bundle->segments * bundle->inputs;
    }
    count += stack->streams * stack->width * stack->width; /* E_added */
    return count + (stack->streams + 3) * stack->width;    /* biases */
}

integer gradients_size(const struct full *stack)
{
    integer size = in_lines(BIASES * stack->hidden);
    size += in_lines(stack->streams * (stack->padded + 2 * stack->call->heads));
    for (integer b = 0; b < EDGES; b++)
        size += bundle_size(&stack->bundle[b]);
    return size;
}

struct partial partial_of(const struct full *stack, integer group)
{
    struct partial partial;
    real *next = stack->partial + group * gradients_size(stack);
    for (integer b = 0; b < EDGES; b++) {
        partial.of[b] = next;
        next += bundle_size(&stack->bundle[b]);
    }
    partial.biases = next;
    partial.channel = next + in_lines(BIASES * stack->hidden);
    partial.factor = partial.channel + stack->streams * stack->padded;
    return partial;
}

/* Adds a row of numbers of all groups, which stand `step` apart. */
static void add_groups(const struct full *stack, const real *from, integer step, integer count, real *to)
{
    memcpy(to, from, (size_t)count * sizeof(real));
    for (integer group = 1; group < stack->groups; group++) {
        const real *more = from + group * step;
        for (integer c = 0; c < count; c++)
            to[c] += more[c];
    }
}

/* Gradients of E and of the features of edges, of that of what E makes of them, [rows, streams, padded]. */
static void edges_backward(struct full *stack, real **weight)
{
    const struct bundle *bundle = &stack->bundle[EDGES];
    const integer padded = stack->padded, row = bundle->rows, threads = stack->call->threads;
    const struct matrix of_maps = {stack->edge_maps_gradient, row}, nothing = {NULL, 0};
    if (stack->call->kind.at != NULL)
        add_groups(stack, stack->edge_maps_gradient, stack->rows * row, stack->rows * row, stack->edge_maps_gradient);
    product_of_transposed(threads, row, padded, stack->rows, of_maps, (struct matrix){stack->edge, padded}, nothing,
                          stack->edges_room, padded);
    for (integer s = 0; s < stack->streams; s++)
        for (integer o = 0; o < stack->width; o++)
            memcpy(weight[E_MAP + s * MAPS_A_STREAM] + o * stack->width,
                   stack->edges_room + (s * padded + o) * padded, (size_t)stack->width * sizeof(real));
    memset(stack->edges_room, 0, (size_t)(row * padded) * sizeof(real));
    pack_bundle_backward(stack, stack->layer, bundle, stack->edges_room);
    product(threads, stack->rows, padded, row, of_maps, stack->edges_room,
            (struct matrix){stack->call->edge_gradient.at, padded}, stack->call->edge_gradient.at, padded);
}

/* Gradients of E_added and of the features of added pairs, of that of the channels. */
static void added_backward(const struct full *stack, const real *of_channel, real **weight)
{
    const struct full_layers *call = stack->call;
    for (integer s = 0; s < stack->streams; s++) {
        const integer number = E_ADDED + s * MAPS_A_STREAM;
        const struct rows map = call->layer[stack->layer].map[number];
        for (integer o = 0; o < stack->width; o++)
            for (integer c = 0; c < stack->width; c++) {
                weight[number][o * stack->width + c] = of_channel[s * stack->padded + o] * call->added.at[c];
                call->added_gradient.at[c] += of_channel[s * stack->padded + o] * row_at(map, o)[c];
            }
    }
}

void unpack_partial(struct full *stack, real *gradients)
{
    const struct full_layers *call = stack->call;
    const struct full_layer *layer = &call->layer[stack->layer];
    const struct partial partial = partial_of(stack, 0);
    const integer step = gradients_size(stack), of_pairs = stack->streams * (stack->padded + 2 * call->heads);
    real *weight[ALL_MAPS], sums[of_pairs];
    for (integer m = 0; m < ALL_MAPS; m++) {
        weight[m] = gradients;
        if (stack->streams == 2 || !(m == O_P_MAP || (m >= MAPS_A_STREAM && m < O_MAP)))
            gradients += layer->map[m].count * layer->map[m].width;
    }
    for (integer b = 0; b < EDGES; b++) {
        const struct bundle *bundle = &stack->bundle[b];
        const integer outputs = padded_to_16(bundle->outputs), inputs = padded_to_16(bundle->inputs);
        for (integer part = 0; part < bundle->parts; part++)
            for (integer o = 0; o < bundle->outputs; o++)
                for (integer segment = 0; segment < bundle->segments; segment++)
                    add_groups(stack, partial.of[b] + (part * outputs + o) * bundle->columns + segment * inputs, step,
                               bundle->inputs, weight[bundle->first + part * bundle->every]
                                                   + (o * bundle->segments + segment) * bundle->inputs);
    }
    for (integer b = 0; b < BIASES; b++) {
        const struct bundle *bundle = &stack->bundle[BUNDLE_OF_BIAS[b]];
        if (bundle->parts == 0)
            continue;
        add_groups(stack, partial.biases + b * stack->hidden, step, bundle->outputs, gradients);
        gradients += bundle->outputs;
    }
    edges_backward(stack, weight);
    add_groups(stack, partial.channel, step, of_pairs, sums);
    added_backward(stack, sums, weight);
    real *of_factor = call->factor_gradient.at + 2 * stack->layer;
    of_factor[0] = of_factor[1] = 0;
    for (integer head = 0; head < stack->streams * call->heads; head++)
        for (integer which = 0; which < 2; which++)
            of_factor[which] += sums[stack->streams * stack->padded + 2 * head + which];
}
