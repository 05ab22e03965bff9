/* PNA's aggregation forward and backward, segment after segment of nodes. */
#include "principal.h"

static const struct matrix NOTHING = {NULL, 0};

static inline struct matrix from_row(struct matrix rows, integer first, integer column)
{
    return (struct matrix){rows.at + first * rows.row + column, rows.row};
}

/* A piece of room; a task does nothing where there is none. */
static real *piece_room(const struct principal *work, integer count)
{
    real *room = room_for_piece(count + 1);
    if (room == NULL)
        *work->failed = 1;
    return room;
}

struct principal aggregation_of(const struct order *order, struct tower_maps maps, struct rows scale,
                                struct indices kinds, integer towers, integer inputs)
{
    const integer channels = maps.message.count, width = channels / towers, wide = whole_vectors(width);
    struct principal work = {.order = order, .maps = maps, .scale = scale, .kinds = kinds.at, .towers = towers,
                             .inputs = inputs, .width = width, .aggregators = kinds.count, .scalers = scale.width,
                             .channels = channels, .vectors = whole_vectors(channels),
                             .padded = whole_vectors((towers - 1) * width + wide), .wide = wide,
                             .wide_inputs = whole_vectors(inputs)};
    for (integer kind = 0; kind < KINDS; kind++)
        work.place[kind] = -1;
    for (integer a = 0; a < kinds.count; a++)
        work.place[kinds.at[a]] = a;
    return work;
}

static void sources_task(void *argument, integer number)
{
    const struct principal copied = *(const struct principal *)argument, *work = &copied;
    const integer first = number * BLOCK, count = smaller(BLOCK, work->order->nodes - first);
    for (integer tower = 0; tower < work->towers; tower++)
        product(1, count, work->wide, work->inputs, from_row(work->x, first, tower * work->inputs),
                map_of_sources(work, tower), NOTHING, work->sources + first * work->padded + tower * work->width,
                work->padded);
}

void map_sources(integer threads, const struct principal *work)
{
    run_tasks(threads, (work->order->nodes + BLOCK - 1) / BLOCK, sources_task, (void *)work);
}

static void update_segment(const struct principal *work, integer first, integer count, const struct segment_maps *maps,
                           const real *aggregates)
{
    const integer width = work->width, wide = work->wide, kinds = work->aggregators;
    const struct matrix all_aggregates = {aggregates, aggregates_row(work)};
    struct term term[1 + KINDS];
    for (integer tower = 0; tower < work->towers; tower++) {
        term[0] = (struct term){from_row(work->x, first, tower * work->inputs),
                                maps->own + tower * work->inputs * wide, work->inputs};
        for (integer a = 0; a < kinds; a++)
            term[1 + a] = (struct term){from_row(all_aggregates, 0, a * work->padded + tower * width),
                                        maps->of_aggregates + (tower * kinds + a) * width * wide, width};
        sum_of_products(count, wide, degree_of(work->order, first) > 0 ? 1 + kinds : 1, term,
                        (struct matrix){maps->bias + tower * wide, 0}, work->out + first * work->padded + tower * width,
                        work->padded);
    }
}

static void update_task(void *argument, integer group)
{
    const struct principal copied = *(const struct principal *)argument, *work = &copied;
    real *room = piece_room(work, segment_maps_size(work) + BLOCK * aggregates_row(work));
    if (room == NULL)
        return;
    const struct segment_maps maps = segment_maps_in(work, room);
    real *aggregates = room + segment_maps_size(work);
    const integer begin = group_begin(work->order, group), end = group_begin(work->order, group + 1);
    for (integer segment = begin; segment < end; segment++) {
        const integer first = work->order->segment[segment], count = work->order->segment[segment + 1] - first;
        if (segment == begin || !same_maps(work, segment - 1, segment))
            find_segment_maps(work, segment, FORWARD, &maps);
        aggregate(work, first, count, aggregates);
        update_segment(work, first, count, &maps, aggregates);
    }
}

void aggregate_and_update(integer threads, const struct principal *work)
{
    run_tasks(threads, work->order->groups, update_task, (void *)work);
}

/* Adds the gradients of a segment's maps. */
static void sum_map_gradients(const struct principal *work, integer first, integer count, const real *aggregates,
                              const struct segment_sums *sums)
{
    const integer width = work->width, wide = work->wide, wide_inputs = work->wide_inputs;
    const struct matrix all_aggregates = {aggregates, aggregates_row(work)};
    for (integer tower = 0; tower < work->towers; tower++) {
        const struct matrix gradient = from_row(work->gradient, first, tower * width);
        real *sum = sums->of_aggregates + tower * work->aggregators * width * wide;
        for (integer a = 0; a < work->aggregators && degree_of(work->order, first) > 0; a++, sum += width * wide)
            product_of_transposed(1, width, wide, count,
                                  from_row(all_aggregates, 0, a * work->padded + tower * width), gradient,
                                  (struct matrix){sum, wide}, sum, wide);
        sum = sums->own + tower * width * wide_inputs;
        product_of_transposed(1, width, wide_inputs, count, gradient, from_row(work->x, first, tower * work->inputs),
                              (struct matrix){sum, wide_inputs}, sum, wide_inputs);
        sum = sums->bias + tower * wide;
        for (integer i = 0; i < count; i++)
            for (integer o = 0; o < wide; o += LANES)
                store(sum + o, load(sum + o) + load(gradient.at + i * gradient.row + o));
    }
}

static void back_to_aggregates(const struct principal *work, integer first, integer count,
                               const struct segment_maps *maps, real *of_aggregates)
{
    const integer width = work->width, wide = work->wide, kinds = work->aggregators, row = aggregates_row(work);
    for (integer tower = 0; tower < work->towers; tower++)
        for (integer a = 0; a < kinds; a++)
            product(1, count, wide, width, from_row(work->gradient, first, tower * width),
                    maps->back_to_aggregates + (tower * kinds + a) * width * wide, NOTHING,
                    of_aggregates + a * work->padded + tower * width, row);
}

static void to_messages_task(void *argument, integer group)
{
    const struct principal copied = *(const struct principal *)argument, *work = &copied;
    const integer maps_size = segment_maps_size(work), sums_size = segment_sums_size(work);
    const integer aggregates_size = BLOCK * aggregates_row(work);
    real *room = piece_room(work, maps_size + sums_size + 2 * aggregates_size);
    if (room == NULL)
        return;
    const struct segment_maps maps = segment_maps_in(work, room);
    const struct segment_sums sums = segment_sums_in(work, room + maps_size);
    real *aggregates = room + maps_size + sums_size, *of_aggregates = aggregates + aggregates_size;
    const integer begin = group_begin(work->order, group), end = group_begin(work->order, group + 1);
    for (integer segment = begin; segment < end; segment++) {
        const integer first = work->order->segment[segment], count = work->order->segment[segment + 1] - first;
        if (segment == begin || !same_maps(work, segment - 1, segment)) {
            find_segment_maps(work, segment, TO_MESSAGES, &maps);
            clear_segment_sums(&sums);
        }
        aggregate(work, first, count, aggregates);
        sum_map_gradients(work, first, count, aggregates, &sums);
        if (degree_of(work->order, first) > 0) {
            back_to_aggregates(work, first, count, &maps, of_aggregates);
            aggregate_backward(work, group, first, count, of_aggregates);
        }
        if (segment + 1 == end || !same_maps(work, segment, segment + 1))
            add_segment_sums(work, group, segment, &maps, &sums);
    }
}

void gradient_to_messages(integer threads, const struct principal *work)
{
    run_tasks(threads, work->order->groups, to_messages_task, (void *)work);
}

/* The gradient of what a node gave the messages it sent. */
static void sum_sent(const struct principal *work, integer node, real *sum)
{
    const struct order *order = work->order;
    clear(sum, work->padded);
    for (integer at = order->sent_start[node]; at < order->sent_start[node + 1]; at++) {
        const real *gradient = work->messages_gradient + order->sent[at] * work->vectors;
        for (integer c = 0; c < work->vectors; c += LANES)
            store(sum + c, load(sum + c) + load(gradient + c));
    }
}

static void segment_to_x(const struct principal *work, integer group, integer first, integer count,
                         const struct segment_maps *maps, const real *sent, real *of_x)
{
    const integer width = work->width, wide_inputs = work->wide_inputs, row = padded_inputs(work);
    const struct matrix of_sources = {sent, work->padded};
    for (integer tower = 0; tower < work->towers; tower++) {
        const struct term term[2] = {
            {from_row(work->gradient, first, tower * width), maps->back_to_x + tower * width * wide_inputs, width},
            {from_row(of_sources, 0, tower * width), back_to_sources(work, tower), width}};
        sum_of_products(count, wide_inputs, 2, term, NOTHING, of_x + tower * work->inputs, row);
        real *sum = part_sums(work, group, tower, OF_SOURCE);
        product_of_transposed(1, width, wide_inputs, count, from_row(of_sources, 0, tower * width),
                              from_row(work->x, first, tower * work->inputs), (struct matrix){sum, wide_inputs}, sum,
                              wide_inputs);
    }
    for (integer i = 0; i < count; i++) {
        real *restrict to = work->x_gradient + (first + i) * work->x_gradient_row;
        for (integer c = 0; c < work->towers * work->inputs; c++)
            to[c] += of_x[i * row + c];
    }
}

static void to_x_task(void *argument, integer group)
{
    const struct principal copied = *(const struct principal *)argument, *work = &copied;
    const integer maps_size = segment_maps_size(work);
    real *room = piece_room(work, maps_size + BLOCK * (work->padded + padded_inputs(work)));
    if (room == NULL)
        return;
    const struct segment_maps maps = segment_maps_in(work, room);
    real *sent = room + maps_size, *of_x = sent + BLOCK * work->padded;
    const integer begin = group_begin(work->order, group), end = group_begin(work->order, group + 1);
    for (integer segment = begin; segment < end; segment++) {
        const integer first = work->order->segment[segment], count = work->order->segment[segment + 1] - first;
        if (segment == begin || !same_maps(work, segment - 1, segment))
            find_segment_maps(work, segment, TO_X, &maps);
        for (integer i = 0; i < count; i++)
            sum_sent(work, first + i, sent + i * work->padded);
        segment_to_x(work, group, first, count, &maps, sent, of_x);
    }
}

void gradient_to_x(integer threads, const struct principal *work)
{
    run_tasks(threads, work->order->groups, to_x_task, (void *)work);
}
