/* The maps of PNA's towers as products of matrices take them, and the way back of their gradients.

   Of a row of `message` the first inputs are those of a source, the next those of a target; of a row of `update` the
   first are those of the node itself, then come those of the aggregates, scaler by scaler. */
#include "principal.h"

/* The row of a map for an output of a tower, at the inputs of a part of a node. */
static inline real *map_row(const struct principal *work, struct rows message, struct rows update, integer tower,
                            integer output, integer part)
{
    const struct rows rows = part == OF_SELF ? update : message;
    return row_at(rows, tower * work->width + output) + (part == OF_TARGET ? work->inputs : 0);
}

/* The same at the aggregates of a scaler. */
static inline real *update_row(const struct principal *work, struct rows update, integer tower, integer output,
                               integer scaler)
{
    return row_at(update, tower * work->width + output) + work->inputs + scaler * work->aggregates;
}

integer forward_maps_size(const struct principal *work)
{
    return work->towers * work->wide * (PARTS * work->inputs + 2 + work->aggregates * work->scalers);
}

integer backward_maps_size(const struct principal *work)
{
    return work->towers * work->wide * (work->scalers * work->wide_aggregates + PARTS * work->wide_inputs);
}

static void clear(real *at, integer count) { memset(at, 0, (size_t)count * sizeof(real)); }

void pack_forward_maps(struct principal *work, real *room)
{
    const struct aggregation *call = work->call;
    const integer towers = work->towers, inputs = work->inputs, wide = work->wide, columns = work->scalers * wide;
    clear(room, forward_maps_size(work));
    work->sources = room;
    work->own = work->sources + towers * inputs * wide;
    work->bias = work->own + towers * inputs * 2 * wide;
    work->update = work->bias + towers * 2 * wide;
    for (integer tower = 0; tower < towers; tower++)
        for (integer o = 0; o < work->width; o++) {
            const real *source = map_row(work, call->message, call->update, tower, o, OF_SOURCE);
            const real *target = map_row(work, call->message, call->update, tower, o, OF_TARGET);
            const real *self = map_row(work, call->message, call->update, tower, o, OF_SELF);
            real *own = work->own + tower * inputs * 2 * wide, *bias = work->bias + tower * 2 * wide;
            for (integer k = 0; k < inputs; k++) {
                *in_panels(work->sources + tower * inputs * wide, inputs, wide, k, o) = source[k];
                *in_panels(own, inputs, 2 * wide, k, o) = target[k];
                *in_panels(own, inputs, 2 * wide, k, wide + o) = self[k];
            }
            bias[o] = call->message_bias.at[tower * work->width + o];
            bias[wide + o] = call->update_bias.at[tower * work->width + o];
            real *update = work->update + tower * work->aggregates * columns;
            for (integer s = 0; s < work->scalers; s++)
                for (integer k = 0; k < work->aggregates; k++)
                    *in_panels(update, work->aggregates, columns, k, s * wide + o)
                        = update_row(work, call->update, tower, o, s)[k];
        }
}

void pack_backward_maps(struct principal *work, real *room)
{
    const struct aggregation *call = work->call;
    const integer inputs = work->inputs, wide = work->wide, scaled = work->scalers * wide;
    clear(room, backward_maps_size(work));
    work->of_update = room;
    work->of_parts = room + work->towers * scaled * work->wide_aggregates;
    for (integer tower = 0; tower < work->towers; tower++)
        for (integer o = 0; o < work->width; o++) {
            real *update = work->of_update + tower * scaled * work->wide_aggregates;
            for (integer s = 0; s < work->scalers; s++)
                for (integer k = 0; k < work->aggregates; k++)
                    *in_panels(update, scaled, work->wide_aggregates, s * wide + o, k)
                        = update_row(work, call->update, tower, o, s)[k];
            real *parts = work->of_parts + tower * PARTS * wide * work->wide_inputs;
            for (integer part = 0; part < PARTS; part++)
                for (integer k = 0; k < inputs; k++)
                    *in_panels(parts, PARTS * wide, work->wide_inputs, part * wide + o, k)
                        = map_row(work, call->message, call->update, tower, o, part)[k];
        }
}

integer principal_partial_size(const struct principal *work)
{
    return work->towers * work->wide * (work->aggregates * work->scalers + (work->inputs + 1) * PARTS);
}

void unpack_map_gradients(const struct principal *work)
{
    const struct aggregation *call = work->call;
    const integer wide = work->wide, columns = work->scalers * wide, parts = PARTS * wide;
    for (integer group = 1; group < work->groups; group++)
        for (integer i = 0; i < work->partial_size; i++)
            work->partial[i] += work->partial[group * work->partial_size + i];
    for (integer tower = 0; tower < work->towers; tower++)
        for (integer o = 0; o < work->width; o++) {
            for (integer part = 0; part < PARTS; part++) {
                real *row = map_row(work, call->message_gradient, call->update_gradient, tower, o, part);
                for (integer k = 0; k < work->inputs; k++)
                    row[k] = part_sums(work, 0, tower)[k * parts + part * wide + o];
            }
            for (integer s = 0; s < work->scalers; s++)
                for (integer k = 0; k < work->aggregates; k++)
                    update_row(work, call->update_gradient, tower, o, s)[k]
                        = update_sums(work, 0, tower)[k * columns + s * wide + o];
            call->message_bias_gradient.at[tower * work->width + o] = bias_sums(work, 0, tower)[OF_TARGET * wide + o];
            call->update_bias_gradient.at[tower * work->width + o] = bias_sums(work, 0, tower)[OF_SELF * wide + o];
        }
}
