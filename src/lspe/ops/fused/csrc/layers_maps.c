/* The maps of GatedGCN layers: as products of matrices take them, these products, and the way back of their gradients.

   What h is multiplied by makes four parts of a row, what p is multiplied by makes four, and e one (gates.h): each
   stream is multiplied by one matrix, whose columns are padded with zeros. */
#include "layers.h"

/* Which map makes which part of a row: of h, of e and of p. */
static const integer MAKERS[3][4] = {{B1, B2, A1, A2}, {B3}, {A1, A2, C2, C1}};
static const integer PARTS[3] = {4, 1, 4};
static const integer OF_BIAS[7] = {B1, B2, A1, A2, C2, C1, B3};

/* Where the columns for a stream begin in a map: A1 and A2 see [h, p]. */
static inline integer first_column(integer stream, integer map, integer width)
{
    return stream == P && (map == A1 || map == A2) ? width : 0;
}

static integer layer_maps_size(const struct stack *stack)
{
    const integer padded = stack->padded;
    return padded * padded * (stack->streams == 2 ? 9 : 5) + row_of_parts(stack->width, stack->streams) + padded;
}

integer maps_size(const struct stack *stack) { return stack->call->count * layer_maps_size(stack); }

static struct maps take_maps(const struct stack *stack, real *room)
{
    struct maps maps = {0};
    for (integer s = 0; s <= stack->streams; s++) {
        maps.of[s] = room;
        room += PARTS[s] * stack->padded * stack->padded;
    }
    maps.bias = room;
    return maps;
}

/* [inputs, parts of outputs] in panels. */
static void pack_stream_forward(const struct stack *stack, const struct gated_layer *layer, integer stream, real *to)
{
    const integer width = stack->width, outputs = PARTS[stream] * width, columns = padded_width(outputs);
    for (integer output = 0; output < columns; output++) {
        const integer step = in_panels(to, width, columns, 1, output) - in_panels(to, width, columns, 0, output);
        real *const into = in_panels(to, width, columns, 0, output);
        const integer map = MAKERS[stream][output < outputs ? output / width : 0];
        const real *from = row_at(layer->map[map], output % width) + first_column(stream, map, width);
        for (integer k = 0; k < width; k++)
            into[k * step] = output < outputs ? from[k] : 0;
    }
}

static void pack_forward_task(void *argument, integer number)
{
    const struct stack *stack = argument;
    const struct gated_layer *layer = &stack->call->layer[number];
    const struct maps maps = stack->maps[number];
    const integer width = stack->width, row = row_of_parts(width, stack->streams);
    for (integer s = 0; s <= stack->streams; s++)
        pack_stream_forward(stack, layer, s, maps.of[s]);
    memset(maps.bias, 0, (size_t)(row + stack->padded) * sizeof(real));
    for (integer part = 0; part < parts_of(stack->streams); part++)
        memcpy(maps.bias + part * width, layer->bias[OF_BIAS[part]].at, (size_t)width * sizeof(real));
    memcpy(maps.bias + row, layer->bias[B3].at, (size_t)width * sizeof(real));
}

/* [parts of outputs, inputs] in panels. */
static void pack_stream_backward(const struct stack *stack, const struct gated_layer *layer, integer stream, real *to)
{
    const integer width = stack->width, padded = stack->padded, inner = PARTS[stream] * width;
    memset(to, 0, (size_t)(inner * padded) * sizeof(real));
    for (integer k = 0; k < inner; k++) {
        const integer number = MAKERS[stream][k / width];
        const real *from = row_at(layer->map[number], k % width) + first_column(stream, number, width);
        for (integer column = 0; column < width; column += LANES)
            memcpy(in_panels(to, inner, padded, k, column), from + column,
                   (size_t)(width - column < LANES ? width - column : LANES) * sizeof(real));
    }
}

static void pack_backward_task(void *argument, integer number)
{
    const struct stack *stack = argument;
    for (integer s = 0; s <= stack->streams; s++)
        pack_stream_backward(stack, &stack->call->layer[number], s, stack->maps[number].of[s]);
}

static void pack(struct stack *stack, real *room, task one)
{
    for (integer layer = 0; layer < stack->call->count; layer++)
        stack->maps[layer] = take_maps(stack, room + layer * layer_maps_size(stack));
    run_tasks(stack->call->threads, stack->call->count, one, stack);
}

void pack_forward(struct stack *stack, real *room) { pack(stack, room, pack_forward_task); }
void pack_backward(struct stack *stack, real *room) { pack(stack, room, pack_backward_task); }

void map_rows(integer threads, struct rows x, const real *maps, const real *bias, struct rows out)
{
    const struct matrix start = bias == NULL ? (struct matrix){out.at, out.step} : (struct matrix){bias, 0};
    product(threads, x.count, out.width, x.width, (struct matrix){x.at, x.step}, maps, start, out.at, out.step);
}

/* Of a row of parts, or of an edge. */
static inline const real *bias_of(const struct stack *stack, struct maps maps, integer stream)
{
    return stream == E ? maps.bias + row_of_parts(stack->width, stack->streams) : maps.bias;
}

/* Whether rows of a piece are those of the table; nobody is trusted that they were not written to since. */
static _Bool are_looked_up(struct rows x, struct rows table, const integer *kind)
{
    for (integer row = 0; row < x.count; row++)
        if (memcmp(row_at(x, row), row_at(table, kind[row]), (size_t)x.width * sizeof(real)) != 0)
            return 0;
    return 1;
}

void map_piece(const struct stack *stack, integer layer, integer piece, integer threads, integer stream, struct rows x,
               struct rows out)
{
    const struct maps maps = stack->maps[layer];
    const struct rows mapped = stack->mapped[stream];
    const integer *kind = NULL;
    if (layer == 0 && mapped.at != NULL)
        kind = stack->call->kind[stream].at + cuts_of(stack, stream)[piece];
    if (kind != NULL && are_looked_up(x, stack->call->table[stream], kind))
        for (integer row = 0; row < out.count; row++)
            memcpy(row_at(out, row), row_at(mapped, kind[row]), (size_t)out.width * sizeof(real));
    else
        map_rows(threads, x, maps.of[stream], bias_of(stack, maps, stream), out);
}

/* Columns of what the maps make of h or e. */
static inline integer mapped_width(const struct stack *stack, integer stream)
{
    return stream == E ? stack->padded : padded_width(4 * stack->width);
}

integer tables_size(const struct stack *stack)
{
    const struct rows *table = stack->call->table;
    return table[H].count * mapped_width(stack, H) + table[E].count * mapped_width(stack, E);
}

void map_tables(struct stack *stack, real *room)
{
    for (integer s = H; s <= E; s++) {
        const struct rows table = stack->call->table[s];
        const integer columns = mapped_width(stack, s);
        if (left_out(table))
            continue;
        stack->mapped[s] = (struct rows){room, table.count, columns, columns};
        map_rows(stack->call->threads, table, stack->maps[0].of[s], bias_of(stack, stack->maps[0], s), stack->mapped[s]);
        room += table.count * columns;
    }
}

/* Adds a row of numbers of all groups. */
static void add_groups(const struct stack *stack, integer at, integer count, real *to)
{
    memcpy(to, stack->partial + at, (size_t)count * sizeof(real));
    for (integer group = 1; group < stack->groups; group++) {
        const real *more = stack->partial + group * stack->partial_size + at;
        for (integer c = 0; c < count; c++)
            to[c] += more[c];
    }
}

void unpack_gradients(const struct stack *stack, integer layer, real *gradients)
{
    const integer width = stack->width, padded = stack->padded, maps = stack->streams == 2 ? 7 : 5;
    real *weight[7], *bias[7], *next = gradients;
    for (integer m = 0; m < maps; m++) {
        weight[m] = next;
        bias[m] = weight[m] + stack->call->layer[layer].map[m].width * width;
        next = bias[m] + width;
    }
    integer at = 0;
    for (integer s = 0; s <= stack->streams; s++)
        for (integer part = 0; part < PARTS[s]; part++, at += width * padded) {
            const integer map = MAKERS[s][part], inputs = stack->call->layer[layer].map[map].width;
            for (integer o = 0; o < width; o++)
                add_groups(stack, at + o * padded, width, weight[map] + o * inputs + first_column(s, map, width));
        }
    for (integer part = 0; part < parts_of(stack->streams); part++)
        add_groups(stack, at + part * width, width, bias[OF_BIAS[part]]);
    memcpy(bias[B3], bias[B1], (size_t)width * sizeof(real)); /* both are added to the same logits */
}
