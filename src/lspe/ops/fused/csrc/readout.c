/* From nodes to a prediction per graph: means over the nodes, the maps of positions and of both, and the head.

   All that is made of a graph stands in one row of `kept`: the mean p, the mean h, the mapped positions, what both are
   fused to, the head's input, and what each of its maps makes of it. */
#include "dropout.h"
#include "tasks.h"

#define GRAPHS_A_TASK 4
#define OUTPUTS_A_TASK 8
#define PROJECT 0 /* maps */
#define FUSE 1
#define HEAD 2 /* the first of several */
#define MOST_MAPS (integer)(sizeof((struct reading *)0)->map / sizeof(struct rows))

/* Where inputs and outputs of each map begin in a row, and how long the row is. */
struct plan {
    integer from[MOST_MAPS], to[MOST_MAPS], total;
};

static struct plan plan_of(const struct reading *call)
{
    struct plan plan;
    const integer p = call->in[1].width, h = call->in[0].width;
    plan.from[PROJECT] = 0;
    plan.from[FUSE] = p;
    plan.to[PROJECT] = p + h;
    plan.to[FUSE] = p + h + call->map[PROJECT].count;
    integer end = plan.to[FUSE] + call->map[FUSE].count, width = call->map[HEAD].width;
    for (integer map = HEAD; map < call->maps; map++) {
        plan.from[map] = end;
        end += width;
        plan.to[map] = end;
        width = call->map[map].count;
    }
    plan.total = end + width;
    return plan;
}

static inline _Bool drops(const struct reading *call, integer map) { return call->dropout > 0 && map + 1 < call->maps; }

static void drop_row(const struct reading *call, integer map, integer graph, real *x)
{
    const struct rows row = {x, 1, call->map[map].width, call->map[map].width};
    drop_rows(1, call->seed[map - HEAD], call->dropout, graph, row, row);
}

/* How much part `number` of the head's input is times the mean of a graph of so many nodes. */
static inline real factor_of(const struct reading *call, integer number, integer nodes)
{
    return call->scale[number] == 0 ? (real)(nodes > 0) : (real)(call->scale[number] * (double)nodes);
}

static real dot(const real *a, const real *b, integer count)
{
    vector sums = {0};
    integer i = 0;
    for (; i + LANES <= count; i += LANES)
        sums += load(a + i) * load(b + i);
    real sum = 0;
    for (integer lane = 0; lane < LANES; lane++)
        sum += sums[lane];
    for (; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

static void add_times(real *restrict to, real factor, const real *restrict x, integer count)
{
    for (integer i = 0; i < count; i++)
        to[i] += factor * x[i];
}

static void mean(struct rows x, integer begin, integer end, real *restrict out)
{
    memset(out, 0, (size_t)x.width * sizeof *out);
    for (integer node = begin; node < end; node++)
        add_times(out, 1, row_at(x, node), x.width);
    for (integer i = 0; i < x.width; i++)
        out[i] /= (real)(end > begin ? end - begin : 1);
}

static void apply(const struct reading *call, const struct plan *plan, integer map, real *row)
{
    const struct rows weight = call->map[map];
    for (integer o = 0; o < weight.count; o++)
        row[plan->to[map] + o] = call->bias[map].at[o] + dot(row_at(weight, o), row + plan->from[map], weight.width);
}

static void read_graph(const struct reading *call, const struct plan *plan, integer graph)
{
    const integer begin = call->start.at[graph], end = call->start.at[graph + 1], width = call->map[FUSE].count;
    real *row = row_at(call->kept, graph), *x = row + plan->from[HEAD];
    mean(call->in[1], begin, end, row + plan->from[PROJECT]);
    mean(call->in[0], begin, end, row + plan->from[FUSE]);
    apply(call, plan, PROJECT, row);
    apply(call, plan, FUSE, row);
    for (integer part = 0; part < call->parts; part++)
        for (integer i = 0; i < width; i++)
            x[part * width + i] = factor_of(call, part, end - begin) * row[plan->to[FUSE] + i];
    if (!left_out(call->beside))
        memcpy(x + call->parts * width, row_at(call->beside, graph), (size_t)call->beside.width * sizeof *x);
    for (integer map = HEAD; map < call->maps; map++) {
        if (drops(call, map))
            drop_row(call, map, graph, row + plan->from[map]);
        apply(call, plan, map, row);
        real *made = row + plan->to[map];
        for (integer o = 0; map + 1 < call->maps && o < call->map[map].count; o++)
            made[o] = made[o] < 0 ? 0 : made[o]; /* NaN stays */
    }
    const integer last = call->maps - 1;
    memcpy(row_at(call->out, graph), row + plan->to[last], (size_t)call->out.width * sizeof *row);
}

struct work {
    const struct reading *call;
    struct plan plan;
    void (*one)(const struct reading *call, const struct plan *plan, integer graph);
};

static void graphs_task(void *argument, integer number)
{
    const struct work *work = argument;
    const integer graphs = work->call->out.count, end = (number + 1) * GRAPHS_A_TASK;
    for (integer graph = number * GRAPHS_A_TASK; graph < (end < graphs ? end : graphs); graph++)
        work->one(work->call, &work->plan, graph);
}

/* Gradients of all that stands in a graph's row, in the same places, and of the graph's nodes. */
static void return_graph(const struct reading *call, const struct plan *plan, integer graph)
{
    const integer begin = call->start.at[graph], end = call->start.at[graph + 1], width = call->map[FUSE].count;
    const real *row = row_at(call->kept, graph);
    real *gradient = row_at(call->gradients, graph), *of_x = gradient + plan->from[HEAD];
    const integer last = call->maps - 1;
    memset(gradient, 0, (size_t)plan->total * sizeof *gradient);
    memcpy(gradient + plan->to[last], row_at(call->out_gradient, graph), (size_t)call->out.width * sizeof *gradient);
    for (integer map = last; map >= 0; map--) {
        if (map == FUSE) {
            for (integer part = 0; part < call->parts; part++)
                add_times(gradient + plan->to[FUSE], factor_of(call, part, end - begin), of_x + part * width, width);
            if (!left_out(call->beside))
                memcpy(row_at(call->beside_gradient, graph), of_x + call->parts * width,
                       (size_t)call->beside.width * sizeof *of_x);
        }
        const struct rows weight = call->map[map];
        real *of_input = gradient + plan->from[map];
        for (integer o = 0; o < weight.count; o++)
            add_times(of_input, gradient[plan->to[map] + o], row_at(weight, o), weight.width);
        if (map >= HEAD && drops(call, map))
            drop_row(call, map, graph, of_input);
        for (integer i = 0; map > HEAD && i < weight.width; i++)
            of_input[i] = row[plan->from[map] + i] <= 0 ? 0 : of_input[i]; /* NaN lets it pass */
    }
    const real share = 1 / (real)(end > begin ? end - begin : 1);
    for (integer node = begin; node < end; node++)
        for (integer stream = 0; stream < 2; stream++) {
            const real *of_mean = gradient + plan->from[stream == 0 ? FUSE : PROJECT];
            for (integer i = 0; i < call->in[stream].width; i++)
                row_at(call->in_gradient[stream], node)[i] = share * of_mean[i];
        }
}

/* Gradients of the weights and biases of some outputs, counted over all maps. */
static void outputs_task(void *argument, integer number)
{
    const struct work *work = argument;
    const struct reading *call = work->call;
    real *to = call->parameters_gradient.at;
    integer first = number * OUTPUTS_A_TASK, left = OUTPUTS_A_TASK;
    for (integer map = 0; map < call->maps && left > 0; map++) {
        const struct rows weight = call->map[map];
        for (; first < weight.count && left > 0; first++, left--) {
            real *of_weight = to + first * weight.width, *of_bias = to + weight.count * weight.width + first;
            memset(of_weight, 0, (size_t)weight.width * sizeof *of_weight);
            *of_bias = 0;
            for (integer graph = 0; graph < call->out.count; graph++) {
                const real of_output = row_at(call->gradients, graph)[work->plan.to[map] + first];
                add_times(of_weight, of_output, row_at(call->kept, graph) + work->plan.from[map], weight.width);
                *of_bias += of_output;
            }
        }
        first -= weight.count;
        to += weight.count * (weight.width + 1);
    }
}

static enum answer check(const struct reading *call)
{
    const integer graphs = call->start.count - 1, nodes = call->in[0].count, parts = call->parts;
    const integer beside = left_out(call->beside) ? 0 : call->beside.width;
    NEED_SIZES(call->threads >= 1 && call->maps > HEAD && call->maps <= MOST_MAPS && parts >= 1 && parts <= 2);
    NEED_SIZES(call->dropout >= 0 && call->dropout <= 1 && graphs >= 0);
    NEED_SIZES(left_out(call->beside) || sized(call->beside, graphs, beside));
    integer inputs[] = {call->in[1].width, call->in[0].width + call->map[PROJECT].count,
                        parts * call->map[FUSE].count + beside};
    for (integer map = 0; map < call->maps; map++) {
        const integer outputs = call->map[map].count;
        NEED_SIZES(sized(call->map[map], outputs, inputs[map < HEAD ? map : HEAD]));
        NEED_SIZES(sized_line(call->bias[map], outputs));
        if (map >= HEAD)
            inputs[HEAD] = outputs;
    }
    NEED_SIZES(sized(call->in[0], nodes, call->in[0].width) && sized(call->in[1], nodes, call->in[1].width));
    NEED_SIZES(sized(call->out, graphs, call->map[call->maps - 1].count));
    NEED_SIZES(sized(call->kept, graphs, plan_of(call).total));
    NEED_INDICES(rises_to(call->start, nodes));
    return DONE;
}

enum answer readout_forward(const struct reading *call)
{
    const enum answer answer = check(call);
    if (answer != DONE)
        return answer;
    struct work work = {call, plan_of(call), read_graph};
    run_tasks(call->threads, (call->out.count + GRAPHS_A_TASK - 1) / GRAPHS_A_TASK, graphs_task, &work);
    return DONE;
}

enum answer readout_backward(const struct reading *call)
{
    const enum answer answer = check(call);
    if (answer != DONE)
        return answer;
    struct work work = {call, plan_of(call), return_graph};
    integer outputs = 0, parameters = 0;
    for (integer map = 0; map < call->maps; map++) {
        outputs += call->map[map].count;
        parameters += call->map[map].count * (call->map[map].width + 1);
    }
    for (integer stream = 0; stream < 2; stream++)
        NEED_SIZES(sized(call->in_gradient[stream], call->in[stream].count, call->in[stream].width));
    NEED_SIZES(left_out(call->beside) || sized(call->beside_gradient, call->beside.count, call->beside.width));
    NEED_SIZES(sized(call->out_gradient, call->out.count, call->out.width));
    NEED_SIZES(sized(call->gradients, call->out.count, work.plan.total));
    NEED_SIZES(sized_line(call->parameters_gradient, parameters));
    run_tasks(call->threads, (call->out.count + GRAPHS_A_TASK - 1) / GRAPHS_A_TASK, graphs_task, &work);
    run_tasks(call->threads, (outputs + OUTPUTS_A_TASK - 1) / OUTPUTS_A_TASK, outputs_task, &work);
    return DONE;
}
