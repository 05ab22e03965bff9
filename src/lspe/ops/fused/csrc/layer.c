/* A whole GatedGCN layer in one call: maps packed, convolution, normalisations, activations, residuals and dropout.

   What is needed only on the way is in one piece of memory, which each thread keeps for its next call. */
#include "real.h"

#include <stdlib.h>

enum { B1, B2, A1, A2, B3, C1, C2 };

static inline integer padded_width(integer width) { return (width + 15) / 16 * 16; }
static inline _Bool has_positions(const struct gated_layer *call) { return call->positions != 0; }
static inline integer streams_of(const struct gated_layer *call) { return has_positions(call) ? 2 : 1; }
static inline integer width_of(const struct gated_layer *call) { return call->h_sum.width; }
static inline integer chunks_of(integer rows) { return (rows + 127) / 128; }

static real *memory_for(integer count)
{
    static _Thread_local real *memory = NULL;
    static _Thread_local integer there = 0;
    if (count > there) {
        free(memory);
        memory = malloc((size_t)count * sizeof(real));
        there = memory == NULL ? 0 : count;
    }
    return memory;
}

/* Memory handed out bit by bit. */
struct room {
    real *next;
};

static real *take(struct room *room, integer count)
{
    real *taken = room->next;
    room->next += (count + 15) / 16 * 16;
    return taken;
}

static struct rows take_rows(struct room *room, integer count, integer width)
{
    return (struct rows){take(room, count * width), count, width, width};
}

/* Of padded rows the columns that matter. */
static struct rows narrow(struct rows rows, integer width)
{
    return (struct rows){rows.at, rows.count, width, rows.step};
}

/* The maps as the convolution takes them. */
struct packed {
    struct rows h, p, e, bias;
};

static struct packed take_packed(const struct gated_layer *call, struct room *room)
{
    const integer padded = padded_width(width_of(call)), streams = streams_of(call);
    struct packed packed = {{0}, {0}, {0}, {0}};
    packed.h = take_rows(room, padded_width(call->h.in.width), 4 * padded);
    if (streams == 2)
        packed.p = take_rows(room, padded_width(call->p.in.width), 4 * padded);
    packed.e = take_rows(room, padded_width(call->e.in.width), padded);
    packed.bias = take_rows(room, 1, (3 + 2 * streams) * padded);
    return packed;
}

static integer packed_size(const struct gated_layer *call)
{
    const integer padded = padded_width(width_of(call));
    const integer inputs = padded_width(call->h.in.width) + padded_width(call->p.in.width);
    return inputs * 4 * padded + padded_width(call->e.in.width) * padded + 7 * padded + 64;
}

static struct rows as_column(struct line line) { return (struct rows){line.at, line.count, 1, 1}; }

/* Packs the maps, or unpacks their gradients. */
static enum answer move_maps(enum answer (*move)(const struct packing *), const struct rows *map,
                             const struct line *bias, integer of_h, _Bool positions, struct packed packed)
{
    struct packing of = {.maps = 4, .inputs = of_h, .weight = {map[B1], map[B2], map[A1], map[A2]},
                         .packed = packed.h};
    enum answer answer = move(&of);
    if (answer == DONE && positions) {
        of = (struct packing){.maps = 4, .inputs = map[C1].width, .weight = {map[A1], map[A2], map[C2], map[C1]},
                              .first = {of_h, of_h, 0, 0}, .packed = packed.p};
        answer = move(&of);
    }
    if (answer == DONE) {
        of = (struct packing){.maps = 1, .inputs = map[B3].width, .weight = {map[B3]}, .packed = packed.e};
        answer = move(&of);
    }
    if (answer != DONE)
        return answer;
    of = (struct packing){.maps = positions ? 7 : 5, .inputs = 1, .packed = packed.bias};
    const integer with[7] = {B1, B2, A1, A2, C2, C1, B3}, without[5] = {B1, B2, A1, A2, B3};
    for (integer m = 0; m < of.maps; m++)
        of.weight[m] = as_column(bias[positions ? with[m] : without[m]]);
    return move(&of);
}

static struct convolution convolution_of(const struct gated_layer *call, struct packed packed)
{
    return (struct convolution){.threads = call->threads, .width = width_of(call), .streams = streams_of(call),
                                .add_gradients = call->residual, .edges = call->edges, .cuts = call->cuts,
                                .h = {.x = call->h.in, .maps = packed.h}, .p = {.x = call->p.in, .maps = packed.p},
                                .e = {.x = call->e.in, .maps = packed.e},
                                .bias = {packed.bias.at, packed.bias.width}, .values = call->values,
                                .logits = call->eta_hat};
}

static struct rows whole(struct rows rows) { return (struct rows){rows.at, rows.count, rows.step, rows.step}; }

static struct normalization normalization_of(const struct gated_layer *call, const struct normal *norm, struct rows x,
                                             struct room *room)
{
    return (struct normalization){.threads = call->threads, .relu = 1, .training = norm->of_rows,
                                  .epsilon = norm->epsilon, .x = x,
                                  .sums = take_rows(room, 2 * chunks_of(x.count), x.width), .weight = norm->weight,
                                  .bias = norm->bias, .mean = norm->mean, .variance = norm->variance,
                                  .rate = norm->rate};
}

static enum answer normalise(const struct gated_layer *call, const struct normal *norm, const struct stream *stream,
                             struct rows x, struct line scale, struct room *room)
{
    struct normalization norm_call = normalization_of(call, norm, x, room);
    norm_call.scale = scale;
    norm_call.out = stream->out;
    if (call->residual)
        norm_call.residual = stream->in;
    if (!norm->of_rows) {
        NEED_SIZES(sized_line(norm->running_mean, x.width) && sized_line(norm->running_variance, x.width));
        NEED_SIZES(sized_line(norm->mean, x.width) && sized_line(norm->variance, x.width));
        memcpy(norm->mean.at, norm->running_mean.at, (size_t)x.width * sizeof(real));
        memcpy(norm->variance.at, norm->running_variance.at, (size_t)x.width * sizeof(real));
    }
    const enum answer answer = norm_forward(&norm_call);
    if (answer != DONE || !norm->of_rows)
        return answer;
    NEED_SIZES(sized_line(norm->running_mean, x.width) && sized_line(norm->running_variance, x.width));
    const real weight = (real)norm->momentum, unbiased = (real)((double)x.count / (double)(x.count - 1));
    for (integer c = 0; c < x.width; c++) {
        norm->running_mean.at[c] += weight * (norm->mean.at[c] - norm->running_mean.at[c]);
        norm->running_variance.at[c] += weight * (unbiased * norm->variance.at[c] - norm->running_variance.at[c]);
    }
    return DONE;
}

static enum answer drop_stream(const struct gated_layer *call, uint64_t seed, struct rows x, struct rows out)
{
    return drop(&(struct dropping){.threads = call->threads, .seed = seed, .p = call->dropout, .x = x, .out = out});
}

static enum answer check(const struct gated_layer *call)
{
    const integer width = width_of(call), nodes = call->edges.nodes, edges = call->edges.source.count;
    const integer padded = padded_width(width), positions = has_positions(call);
    NEED_SIZES(width >= 1 && width <= WIDEST && call->threads >= 1 && call->dropout >= 0 && call->dropout <= 1);
    NEED_SIZES(call->h_sum.step == padded && call->eta_hat.step == padded && call->eta_hat.width == width);
    NEED_SIZES(sized(call->h_sum, nodes, width) && sized(call->eta_hat, edges, width));
    NEED_SIZES(sized(call->h.in, nodes, width) && sized(call->e.in, edges, width));
    NEED_SIZES(!positions || (sized(call->p_sum, nodes, width) && call->p_sum.step == padded));
    NEED_SIZES(positions ? sized(call->p.in, nodes, width) : left_out(call->p.in));
    for (integer m = 0; m < (positions ? 7 : 5); m++) {
        const integer inputs = positions && (m == A1 || m == A2) ? 2 * width : width;
        NEED_SIZES(sized(call->map[m], width, inputs) && sized_line(call->bias[m], width));
    }
    return DONE;
}

static enum answer forward(const struct gated_layer *call, struct room room)
{
    const integer width = width_of(call), positions = has_positions(call);
    struct packed packed = take_packed(call, &room);
    enum answer answer = move_maps(pack_maps, call->map, call->bias, width, positions, packed);
    if (answer != DONE)
        return answer;
    struct convolution convolution = convolution_of(call, packed);
    convolution.logits = whole(call->eta_hat);
    convolution.out[0] = whole(call->h_sum);
    if (positions)
        convolution.out[1] = whole(call->p_sum);
    answer = convolution_forward(&convolution);
    if (answer == DONE)
        answer = normalise(call, &call->norm_h, &call->h, call->h_sum, call->scale, &room);
    if (answer == DONE)
        answer = normalise(call, &call->norm_e, &call->e, call->eta_hat, (struct line){0}, &room);
    if (answer == DONE && positions)
        answer = tanh_forward(&(struct activation){.threads = call->threads, .x = call->p_sum,
                                                   .other = call->residual ? call->p.in : (struct rows){0},
                                                   .out = call->p.out});
    const struct stream *streams[3] = {&call->h, &call->e, &call->p};
    for (integer i = 0; i < (positions ? 3 : 2) && call->dropout > 0 && answer == DONE; i++)
        answer = drop_stream(call, streams[i]->seed, streams[i]->out, streams[i]->out);
    return answer;
}

enum answer gated_layer_forward(const struct gated_layer *call)
{
    const enum answer sound = check(call);
    if (sound != DONE)
        return sound;
    const integer sums = 2 * (chunks_of(call->edges.nodes) + chunks_of(call->edges.source.count));
    const integer size = packed_size(call) + (sums + 4) * width_of(call) + 256;
    real *memory = memory_for(size);
    return memory == NULL ? NO_MEMORY : forward(call, (struct room){memory});
}

/* The gradient behind the dropout: the one given, or a copy with the same places dropped. Where there is a residual it
   is also the beginning of the input's gradient, whose padding is zero. */
static enum answer begin_gradient(const struct gated_layer *call, const struct stream *stream, struct room *room,
                                  struct rows *gradient)
{
    const integer rows = stream->in.count, width = stream->in.width;
    const struct rows given = stream->out_gradient, of_input = stream->in_gradient;
    NEED_SIZES(sized(given, rows, width) && sized(of_input, rows, width) && of_input.step == padded_width(width));
    *gradient = given;
    if (call->dropout > 0) {
        *gradient = take_rows(room, rows, width);
        const enum answer answer = drop_stream(call, stream->seed, given, *gradient);
        if (answer != DONE)
            return answer;
    }
    for (integer row = 0; row < rows && call->residual; row++) {
        memcpy(row_at(of_input, row), row_at(*gradient, row), (size_t)width * sizeof(real));
        memset(row_at(of_input, row) + width, 0, (size_t)(of_input.step - width) * sizeof(real));
    }
    return DONE;
}

static enum answer normalise_backward(const struct gated_layer *call, const struct normal *norm, struct rows x,
                                      struct line scale, struct rows gradient, struct rows x_gradient,
                                      struct room *room)
{
    struct normalization norm_call = normalization_of(call, norm, x, room);
    norm_call.scale = scale;
    norm_call.gradient = gradient;
    norm_call.x_gradient = x_gradient;
    norm_call.means = (struct line){take(room, 2 * x.width), 2 * x.width};
    norm_call.weight_gradient = norm->weight_gradient;
    norm_call.bias_gradient = norm->bias_gradient;
    return norm_backward(&norm_call);
}

static integer pieces_at_most(integer nodes) { return nodes / 512 + 1 < 64 ? nodes / 512 + 1 : 64; }

static integer gradients_size(const struct gated_layer *call)
{
    const integer width = width_of(call), padded = padded_width(width), streams = streams_of(call);
    return width * 4 * padded * streams + width * padded + (2 + 2 * streams) * padded;
}

static enum answer backward(const struct gated_layer *call, struct room room)
{
    const integer width = width_of(call), padded = padded_width(width), positions = has_positions(call);
    const integer nodes = call->edges.nodes, edges = call->edges.source.count, size = gradients_size(call);
    struct packed packed = take_packed(call, &room);
    enum answer answer = move_maps(pack_maps, call->map, call->bias, width, positions, packed);
    if (answer != DONE)
        return answer;
    struct convolution convolution = convolution_of(call, packed);
    convolution.logits = whole(call->eta_hat);
    convolution.logits_gradient = take_rows(&room, edges, padded);
    convolution.h.gradient = whole(call->h.in_gradient);
    convolution.e.gradient = whole(call->e.in_gradient);
    convolution.partial = take_rows(&room, pieces_at_most(nodes), size);
    convolution.total = (struct line){take(&room, size), size};
    for (integer stream = 0; stream < streams_of(call); stream++)
        convolution.out_gradient[stream] = take_rows(&room, nodes, padded);

    struct rows gradient;
    answer = begin_gradient(call, &call->h, &room, &gradient);
    if (answer == DONE)
        answer = normalise_backward(call, &call->norm_h, call->h_sum, call->scale, gradient,
                                    narrow(convolution.out_gradient[0], width), &room);
    if (answer == DONE)
        answer = begin_gradient(call, &call->e, &room, &gradient);
    if (answer == DONE)
        answer = normalise_backward(call, &call->norm_e, call->eta_hat, (struct line){0}, gradient,
                                    narrow(convolution.logits_gradient, width), &room);
    if (answer == DONE && positions) {
        convolution.p.gradient = whole(call->p.in_gradient);
        answer = begin_gradient(call, &call->p, &room, &gradient);
    }
    if (answer == DONE && positions)
        answer = tanh_backward(&(struct activation){.threads = call->threads, .x = call->p_sum, .other = gradient,
                                                    .out = narrow(convolution.out_gradient[1], width)});
    if (answer == DONE)
        answer = convolution_backward(&convolution);
    if (answer != DONE)
        return answer;

    real *total = convolution.total.at;
    struct packed of = {.h = {total, width, 4 * padded, 4 * padded}};
    total += width * 4 * padded;
    if (positions) {
        of.p = (struct rows){total, width, 4 * padded, 4 * padded};
        total += width * 4 * padded;
    }
    of.e = (struct rows){total, width, padded, padded};
    total += width * padded;
    /* B3's bias is added to the same logits as B1's */
    const integer parts = (2 + 2 * streams_of(call)) * padded;
    of.bias = take_rows(&room, 1, parts + padded);
    memcpy(of.bias.at, total, (size_t)parts * sizeof(real));
    memcpy(of.bias.at + parts, total, (size_t)padded * sizeof(real));
    return move_maps(unpack_maps, call->map_gradient, call->bias_gradient, width, positions, of);
}

enum answer gated_layer_backward(const struct gated_layer *call)
{
    const enum answer sound = check(call);
    if (sound != DONE)
        return sound;
    const integer width = width_of(call), padded = padded_width(width), size = gradients_size(call);
    const integer nodes = call->edges.nodes, edges = call->edges.source.count;
    const integer sums = 2 * (chunks_of(nodes) + chunks_of(edges));
    const integer rows = (nodes * 2 + edges) * 2; /* gradients of sums and logits, and dropped ones */
    const integer all = packed_size(call) + rows * padded + (pieces_at_most(nodes) + 2) * size + (sums + 8) * padded + 512;
    real *memory = memory_for(all);
    return memory == NULL ? NO_MEMORY : backward(call, (struct room){memory});
}
