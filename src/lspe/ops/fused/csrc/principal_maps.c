/* The maps of PNA's towers as products of matrices take them, and the way back of their gradients.

   Of a row of `message` the first inputs are those of a source, the next those of a target; of a row of `update` the
   first are those of the node itself, then come those of the aggregates, scaler by scaler. */
#include "principal.h"

/* The maps of a tower, as they serve all segments: of the aggregates, [scalers, aggregators, width, wide] in panels of
   one aggregator each, and from their gradient back; of sources in panels, [inputs, wide] and back [width, wide_inputs];
   of the node itself [inputs, wide] and back [width, wide_inputs]; of targets back [width, wide_inputs]; both biases. */
struct tower {
    real *update, *of_update, *sources, *of_sources, *self, *of_self, *of_target, *message_bias, *update_bias;
};

static integer aggregates_map(const struct principal *work) { return work->aggregators * work->width * work->wide; }
static integer input_map(const struct principal *work) { return work->inputs * work->wide; }
static integer back_to_input_map(const struct principal *work) { return work->width * work->wide_inputs; }

static integer tower_size(const struct principal *work)
{
    return 2 * work->scalers * aggregates_map(work) + 2 * input_map(work) + 3 * back_to_input_map(work) + 2 * work->wide;
}
integer packed_size(const struct principal *work) { return work->towers * tower_size(work); }

static struct tower tower_at(const struct principal *work, integer number)
{
    struct tower tower = {.update = work->packed + number * tower_size(work)};
    tower.of_update = tower.update + work->scalers * aggregates_map(work);
    tower.sources = tower.of_update + work->scalers * aggregates_map(work);
    tower.self = tower.sources + input_map(work);
    tower.of_sources = tower.self + input_map(work);
    tower.of_self = tower.of_sources + back_to_input_map(work);
    tower.of_target = tower.of_self + back_to_input_map(work);
    tower.message_bias = tower.of_target + back_to_input_map(work);
    tower.update_bias = tower.message_bias + work->wide;
    return tower;
}
const real *map_of_sources(const struct principal *work, integer tower) { return tower_at(work, tower).sources; }
const real *back_to_sources(const struct principal *work, integer tower) { return tower_at(work, tower).of_sources; }

/* What an output of a tower is made of: the inputs of a source, a target or the node itself. */
static inline real *part_row(const struct principal *work, struct tower_maps maps, integer tower, integer output,
                             integer part)
{
    const struct rows rows = part == OF_SELF ? maps.update : maps.message;
    return row_at(rows, tower * work->width + output) + (part == OF_TARGET ? work->inputs : 0);
}
/* The same of an aggregator, times a scaler. */
static inline real *update_row(const struct principal *work, struct tower_maps maps, integer tower, integer output,
                               integer scaler, integer aggregator)
{
    return row_at(maps.update, tower * work->width + output) + work->inputs
           + (scaler * work->aggregators + aggregator) * work->width;
}

static void pack_update(const struct principal *work, integer number, struct tower tower)
{
    const integer width = work->width, wide = work->wide;
    for (integer s = 0; s < work->scalers; s++)
        for (integer a = 0; a < work->aggregators; a++) {
            const integer at = (s * work->aggregators + a) * width * wide;
            for (integer o = 0; o < width; o++) {
                const real *row = update_row(work, work->maps, number, o, s, a);
                for (integer k = 0; k < width; k++) {
                    *in_panels(tower.update + at, width, wide, k, o) = row[k];
                    *in_panels(tower.of_update + at, width, wide, o, k) = row[k];
                }
            }
        }
}

void pack_towers(const struct principal *work)
{
    const integer width = work->width, inputs = work->inputs, wide = work->wide, wide_inputs = work->wide_inputs;
    const size_t row = (size_t)inputs * sizeof(real);
    clear(work->packed, packed_size(work));
    for (integer number = 0; number < work->towers; number++) {
        const struct tower tower = tower_at(work, number);
        pack_update(work, number, tower);
        for (integer o = 0; o < width; o++) {
            const real *source = part_row(work, work->maps, number, o, OF_SOURCE);
            const real *self = part_row(work, work->maps, number, o, OF_SELF);
            for (integer k = 0; k < inputs; k++) {
                *in_panels(tower.sources, inputs, wide, k, o) = source[k];
                *in_panels(tower.of_sources, width, wide_inputs, o, k) = source[k];
                tower.self[k * wide + o] = self[k];
            }
            memcpy(tower.of_self + o * wide_inputs, self, row);
            memcpy(tower.of_target + o * wide_inputs, part_row(work, work->maps, number, o, OF_TARGET), row);
            tower.message_bias[o] = work->maps.message_bias.at[number * width + o];
            tower.update_bias[o] = work->maps.update_bias.at[number * width + o];
        }
    }
}

/* [inner, columns] into panels. */
static void to_panels(const real *from, integer inner, integer columns, real *panels)
{
    for (integer k = 0; k < inner; k++)
        for (integer c = 0; c < columns; c += LANES)
            store(in_panels(panels, inner, columns, k, c), load(from + k * columns + c));
}

/* to += factor * from */
static inline void add_times(real *to, real factor, const real *from, integer count)
{
    for (integer i = 0; i < count; i += LANES)
        store(to + i, load(to + i) + factor * load(from + i));
}

/* How much of what a target adds to its messages is in an aggregate of them. */
static inline real share_of_target(integer kind, integer degree)
{
    return kind == STD || degree == 0 ? 0 : kind == SUM ? (real)degree : 1;
}

integer segment_maps_size(const struct principal *work)
{
    const integer larger = input_map(work) > back_to_input_map(work) ? input_map(work) : back_to_input_map(work);
    const integer tower = 2 * aggregates_map(work) + (work->width + 1) * work->wide + input_map(work)
                          + back_to_input_map(work);
    return work->towers * tower + larger;
}

struct segment_maps segment_maps_in(const struct principal *work, real *room)
{
    struct segment_maps maps = {.of_aggregates = room};
    maps.back_to_aggregates = maps.of_aggregates + work->towers * aggregates_map(work);
    maps.of_target = maps.back_to_aggregates + work->towers * aggregates_map(work);
    maps.own = maps.of_target + work->towers * work->width * work->wide;
    maps.bias = maps.own + work->towers * input_map(work);
    maps.back_to_x = maps.bias + work->towers * work->wide;
    maps.room = maps.back_to_x + work->towers * back_to_input_map(work);
    return maps;
}

static inline const real *scale_of(const struct principal *work, integer segment)
{
    return row_at(work->scale, work->order->node[work->order->segment[segment]]);
}
static inline integer segment_degree(const struct principal *work, integer segment)
{
    return degree_of(work->order, work->order->segment[segment]);
}

_Bool same_maps(const struct principal *work, integer one, integer other)
{
    return segment_degree(work, one) == segment_degree(work, other)
           && memcmp(scale_of(work, one), scale_of(work, other), (size_t)work->scalers * sizeof(real)) == 0;
}

/* Maps of the aggregates, all scalers in them. */
static void add_scaled(const struct principal *work, const real *scale, const real *of_scalers, real *to)
{
    const integer size = aggregates_map(work);
    clear(to, size);
    for (integer s = 0; s < work->scalers; s++)
        add_times(to, scale[s], of_scalers + s * size, size);
}

static void find_target_map(const struct principal *work, integer degree, const real *of_aggregates, real *of_target)
{
    const integer width = work->width, wide = work->wide;
    clear(of_target, width * wide);
    for (integer a = 0; a < work->aggregators; a++) {
        const real share = share_of_target(work->kinds[a], degree);
        const real *map = of_aggregates + a * width * wide;
        for (integer k = 0; k < width && share != 0; k++)
            for (integer o = 0; o < wide; o += LANES)
                add_times(of_target + k * wide + o, share, in_panels((real *)map, width, wide, k, o), LANES);
    }
}

void find_segment_maps(const struct principal *work, integer segment, enum direction direction,
                       const struct segment_maps *maps)
{
    const integer width = work->width, wide = work->wide, inputs = work->inputs, wide_inputs = work->wide_inputs;
    const real *scale = scale_of(work, segment);
    for (integer number = 0; number < work->towers; number++) {
        const struct tower tower = tower_at(work, number);
        real *of_aggregates = maps->of_aggregates + number * aggregates_map(work);
        real *of_target = maps->of_target + number * width * wide;
        add_scaled(work, scale, tower.update, of_aggregates);
        find_target_map(work, segment_degree(work, segment), of_aggregates, of_target);
        const struct matrix target = {of_target, wide};
        if (direction == FORWARD) {
            const struct matrix message = {part_row(work, work->maps, number, 0, OF_TARGET), work->maps.message.step};
            product_of_transposed(1, inputs, wide, width, message, target, (struct matrix){tower.self, wide}, maps->room,
                                  wide);
            to_panels(maps->room, inputs, wide, maps->own + number * input_map(work));
            real *bias = maps->bias + number * wide;
            memcpy(bias, tower.update_bias, (size_t)wide * sizeof(real));
            for (integer k = 0; k < width; k++)
                add_times(bias, tower.message_bias[k], of_target + k * wide, wide);
        } else if (direction == TO_MESSAGES) {
            add_scaled(work, scale, tower.of_update, maps->back_to_aggregates + number * aggregates_map(work));
        } else {
            product_of_transposed(1, width, wide_inputs, width, target, (struct matrix){tower.of_target, wide_inputs},
                                  (struct matrix){tower.of_self, wide_inputs}, maps->room, wide_inputs);
            to_panels(maps->room, width, wide_inputs, maps->back_to_x + number * back_to_input_map(work));
        }
    }
}

integer segment_sums_size(const struct principal *work)
{
    const integer tower = aggregates_map(work) + back_to_input_map(work) + work->wide;
    return work->towers * tower + work->width * work->wide + input_map(work) + back_to_input_map(work);
}

struct segment_sums segment_sums_in(const struct principal *work, real *room)
{
    struct segment_sums sums = {.of_aggregates = room};
    sums.own = sums.of_aggregates + work->towers * aggregates_map(work);
    sums.bias = sums.own + work->towers * back_to_input_map(work);
    sums.room = sums.bias + work->towers * work->wide;
    return sums;
}

void clear_segment_sums(const struct segment_sums *sums) { clear(sums->of_aggregates, sums->room - sums->of_aggregates); }

/* The gradient of what a target's part of the messages is multiplied by, [width, wide]; it came with the map of the
   node itself, whose gradient is `own`, and its bias. */
static void find_target_gradient(const struct principal *work, integer number, const real *own, const real *bias,
                                 real *panels, real *of_target)
{
    const integer width = work->width, wide = work->wide, inputs = work->inputs;
    const struct tower tower = tower_at(work, number);
    const struct matrix message = {part_row(work, work->maps, number, 0, OF_TARGET), work->maps.message.step};
    clear(panels, input_map(work));
    for (integer o = 0; o < width; o++)
        for (integer k = 0; k < inputs; k++)
            *in_panels(panels, inputs, wide, k, o) = own[o * work->wide_inputs + k];
    clear(of_target, width * wide);
    for (integer k = 0; k < width; k++)
        add_times(of_target + k * wide, tower.message_bias[k], bias, wide);
    product(1, width, wide, inputs, message, panels, (struct matrix){of_target, wide}, of_target, wide);
}

void add_segment_sums(const struct principal *work, integer group, integer segment, const struct segment_maps *maps,
                      const struct segment_sums *sums)
{
    const integer width = work->width, wide = work->wide, wide_inputs = work->wide_inputs;
    const real *scale = scale_of(work, segment);
    real *of_target = sums->room, *panels = of_target + width * wide, *own_panels = panels + input_map(work);
    for (integer number = 0; number < work->towers; number++) {
        const real *own = sums->own + number * back_to_input_map(work), *bias = sums->bias + number * wide;
        real *biases = bias_sums(work, group, number);
        add_times(part_sums(work, group, number, OF_SELF), 1, own, back_to_input_map(work));
        add_times(biases + wide, 1, bias, wide);

        const struct matrix target = {maps->of_target + number * width * wide, wide};
        real *of_message = part_sums(work, group, number, OF_TARGET);
        to_panels(own, width, wide_inputs, own_panels);
        product(1, width, wide_inputs, width, target, own_panels, (struct matrix){of_message, wide_inputs}, of_message,
                wide_inputs);
        for (integer k = 0; k < width; k++)
            for (integer o = 0; o < width; o++)
                biases[k] += target.at[k * wide + o] * bias[o];

        find_target_gradient(work, number, own, bias, panels, of_target);
        real *of_update = update_sums(work, group, number);
        for (integer s = 0; s < work->scalers; s++)
            for (integer a = 0; a < work->aggregators; a++, of_update += width * wide) {
                const real share = share_of_target(work->kinds[a], segment_degree(work, segment));
                add_times(of_update, scale[s], sums->of_aggregates + number * aggregates_map(work) + a * width * wide,
                          width * wide);
                if (share != 0)
                    add_times(of_update, scale[s] * share, of_target, width * wide);
            }
    }
}

integer partial_size(const struct principal *work)
{
    return work->towers
           * (work->scalers * aggregates_map(work) + PARTS * back_to_input_map(work) + 2 * work->wide);
}

void unpack_tower_gradients(const struct principal *work, struct tower_maps gradients)
{
    const integer width = work->width, wide = work->wide;
    for (integer group = 1; group < work->order->groups; group++)
        add_times(work->partial, 1, work->partial + group * work->partial_size, work->partial_size);
    for (integer tower = 0; tower < work->towers; tower++)
        for (integer o = 0; o < width; o++) {
            for (integer part = 0; part < PARTS; part++)
                memcpy(part_row(work, gradients, tower, o, part),
                       part_sums(work, 0, tower, part) + o * work->wide_inputs, (size_t)work->inputs * sizeof(real));
            const real *sums = update_sums(work, 0, tower);
            for (integer s = 0; s < work->scalers; s++)
                for (integer a = 0; a < work->aggregators; a++, sums += width * wide)
                    for (integer k = 0; k < width; k++)
                        update_row(work, gradients, tower, o, s, a)[k] = sums[k * wide + o];
            gradients.message_bias.at[tower * width + o] = bias_sums(work, 0, tower)[o];
            gradients.update_bias.at[tower * width + o] = bias_sums(work, 0, tower)[wide + o];
        }
}
