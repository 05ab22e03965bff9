/* Everything that Python calls. Read twice: by the compiler, behind real.h, and by cffi, which knows no preprocessor.

   A tensor comes with its own sizes, and every function compares them before it touches a number: what does not fit is
   answered with WRONG_SIZES or WRONG_INDICES, and nothing has happened. NOT_SERVED: what it takes is not there. A null
   pointer stands for a tensor that is left out. */

enum answer { DONE, NO_MEMORY, WRONG_SIZES, WRONG_INDICES, NOT_SERVED };

/* [count, width], its rows `step` numbers apart. */
struct rows {
    real *at;
    integer count, width, step;
};

struct line {
    real *at;
    integer count;
};

struct indices {
    integer *at;
    integer count;
};

/* Edges of `nodes` nodes, in_edge[in_start[i]] to in_edge[in_start[i + 1]] those that end in node i, out_edge those
   that begin there. */
struct edges {
    integer nodes;
    struct indices source, target, in_start, in_edge, out_start, out_edge;
};

/* What is taken of PyTorch itself: GOMP_parallel of its OpenMP runtime, dsyevd_ of its LAPACK; or null. */
void set_parallel_region(void *function);
void set_eigensolver(void *function);

/* c = a b, or a' b where `transposed`, to see whether products are compiled as they are meant. */
struct trial {
    integer transposed;
    struct rows a, b, c;
};
enum answer try_product(const struct trial *call);

/* Adds one to each of `seen` in a task of its own, to see whether the threads work. */
struct counting {
    integer threads;
    struct indices seen;
};
enum answer try_threads(const struct counting *call);

/* start [rows + 1] and edge [count]: the edges that end in row r are edge[start[r]] to edge[start[r + 1]], in their own
   order. `wrong` [1] becomes -1, or the first edge whose end is not a row. */
struct edge_order {
    struct indices end, start, edge, wrong;
};
enum answer edges_by_end(const struct edge_order *call);

/* Cuts a batch into pieces that no edge joins, and whose edges stand together: the first such place behind each of
   `pieces` equal shares of the nodes. `cuts` [2, pieces + 1]: where the nodes and where the edges of each piece begin;
   the last ones are empty where there are fewer. `room` is for one number more than there are edges. */
struct edge_cuts {
    integer nodes, pieces;
    struct indices source, target, room, cuts;
};
enum answer find_cuts(const struct edge_cuts *call);

/* Columns [first, first + inputs) of up to eight maps [outputs, ...] side by side and transposed, each padded to the
   same width: packed [inputs or more, maps * padded]. Packing fills the padding with zeros. */
struct packing {
    integer maps, inputs;
    struct rows weight[8];
    integer first[8];
    struct rows packed;
};
enum answer pack_maps(const struct packing *call);
enum answer unpack_maps(const struct packing *call);

/* Adds values to parts of a vector: vector[start[i]] to vector[start[i] + size[i] - 1] for each i, the values of which stand
   side by side. */
struct parts {
    struct line vector, values;
    struct indices start, size;
};
enum answer add_parts(const struct parts *call);

/* Forward: rows[r] = the sum of table[entry[r * columns + c]] over c < columns. Backward: table[t] = the sum of the rows
   with an entry t, each as often as it has it. */
struct entries {
    integer threads, columns;
    struct indices entry;
    struct rows table, rows;
};
enum answer sums_of_entries(const struct entries *call);
enum answer sums_by_entry(const struct entries *call);

/* A step of Adam for one or two groups of weights, whose gradients stand side by side, scaled so that their norm is at
   most `clip` if that is not zero. With a gradient g, `decay` times the weight added to it:

       first = beta1 first + (1 - beta1) g,  second = beta2 second + (1 - beta2) g^2,
       weight = (1 - rate decoupled_decay) weight - rate / correction1 first / (sqrt(second / correction2) + epsilon)

   and average += share (weight - average), where there is one. Gradients are left as they were used, or with `forget` as
   zeros. */
struct adam_group {
    double rate, beta1, beta2, epsilon, decay, decoupled_decay, correction1, correction2;
    struct line weight, first, second, average;
};
struct adam {
    integer threads, groups, forget;
    double clip, share;
    struct line gradient;
    struct adam_group group[2];
};
enum answer adam_step(const struct adam *call);

/* Forward: out = other + tanh(x), other may be left out. Backward: out = other * (1 - tanh(x)^2). */
struct activation {
    integer threads;
    struct rows x, other, out;
};
enum answer tanh_forward(const struct activation *call);
enum answer tanh_backward(const struct activation *call);

/* out = x / (1 - p) where a number drawn for its place is not below p, else 0. */
struct dropping {
    integer threads;
    uint64_t seed;
    double p;
    struct rows x, out;
};
enum answer drop(const struct dropping *call);

/* out = residual + relu(weight * (scale * x - mean) * rate + bias), rate = 1 / sqrt(variance + epsilon).
   In training mean and variance are found here, otherwise they are given. Backward: gradients of x, weight and bias.
   `sums` [2 * chunks of 128 rows, width] and `means` [2 * width] are room. */
struct normalization {
    integer threads, relu, training;
    double epsilon;
    struct rows x, residual, out, gradient, x_gradient, sums;
    struct line scale, weight, bias, mean, variance, rate, means, weight_gradient, bias_gradient;
};
enum answer norm_forward(const struct normalization *call);
enum answer norm_backward(const struct normalization *call);

/* A normalisation inside a layer. `of_rows`: by the statistics of the rows, which then go into the running ones, each
   weighed by `momentum`; otherwise by these. */
struct normal {
    integer of_rows;
    double epsilon, momentum;
    struct line weight, bias, running_mean, running_variance;
};

/* A GatedGCN layer. Maps in the order B1, B2, A1, A2, B3, C1, C2, the last two with positions only. Dropout is behind the
   residual or, with `drop_branch`, of what is added to it. */
struct gated_layer {
    integer residual, scaled, drop_branch;
    double dropout;
    uint64_t seed[3]; /* of h, e and p */
    struct rows map[7];
    struct line bias[7];
    struct normal norm[2]; /* of h and e */
};

/* GatedGCN layers one after the other: at most sixteen in a call. `out` and the gradients have padded rows. h, e and p
   are numbers 0, 1 and 2, the last with `positions` only. `scale` [nodes] is for layers that are `scaled`.

   Rows of h and e may be looked up, in[s] = table[s][kind[s]]: the first layer's maps are then applied to the table. It
   is left out where they are not.

   `memory`, [(3 * streams * nodes + 2 * edges + 6) * padded width] of each layer, is what the backward pass needs of the
   forward pass. Where it is left out there is none, and the normalisations are not of the rows.

   Backward: of `out_gradient` some may be left out. `parameters_gradient` is that of each layer's maps, weight and bias
   in turns, then of its normalisations, side by side. */
struct gated_layers {
    integer threads, count, positions;
    struct edges edges;
    struct indices cuts;
    struct rows in[3], out[3], table[2];
    struct indices kind[2];
    struct line scale, memory[16];
    struct gated_layer layer[16];
    struct rows out_gradient[3], in_gradient[3];
    struct line parameters_gradient;
};
enum answer gated_layers_forward(const struct gated_layers *call);
enum answer gated_layers_backward(const struct gated_layers *call);

/* From h and p of nodes, `in`, to a prediction per graph, whose nodes are start[g] to start[g + 1]. With means over them,
   fused = map[1] [mean h, map[0] mean p]; then the head, whose maps are the rest, with ReLU between them and dropout
   before all but the last. Its input is `parts` times fused, each `scale` times the number of nodes (0: once), and
   `beside` [graphs, ...], which may be left out.

   `kept` and `gradients` [graphs, all widths: p, h, the outputs of the first two maps, the head's input and its outputs]:
   what the backward pass needs of the forward pass, and room. `parameters_gradient` is that of the maps, weight and bias
   in turns, side by side. */
struct reading {
    integer threads, maps, parts;
    double scale[2], dropout;
    uint64_t seed[6];
    struct indices start;
    struct rows in[2], beside, map[8], out, kept;
    struct line bias[8];
    struct rows out_gradient, in_gradient[2], beside_gradient, gradients;
    struct line parameters_gradient;
};
enum answer readout_forward(const struct reading *call);
enum answer readout_backward(const struct reading *call);

/* out_i = own * x_i + the sum over the edges j -> i of relu(x_j + c_ij), where c of an edge is that row of `values` which
   `kind` [edges] says, or its own where `kind` is left out. Backward, `groups` of nodes each sum the gradients of the
   values: values_gradient [groups * values, width], or [edges, width]. */
struct relu_sums {
    integer threads, groups;
    double own;
    struct edges edges;
    struct rows x, values, out, gradient, x_gradient, values_gradient;
    struct indices kind;
};
enum answer relu_sum_forward(const struct relu_sums *call);
enum answer relu_sum_backward(const struct relu_sums *call);

/* PNA's aggregation in `towers` of as many channels each. x [nodes, towers * inputs]; values [rows, whole vectors]: what
   the messages get of the edges, each that row which `kind` [edges] says, or its own where `kind` is left out. A row of
   `message` takes a source's inputs, then a target's, and may go on; one of `update` takes a node's inputs, then its
   aggregates of all `kinds`, each once, times each of its numbers in `scale` [nodes, scalers]. `sources`, for each node
   the channels of all towers but the last and those of one in whole vectors, padded, is what the backward pass needs of
   the forward pass. Of message_gradient what belongs to neither source nor target is left as it is. */
struct aggregation {
    integer threads, towers;
    struct indices kinds, kind;
    struct edges edges;
    struct rows x, values, scale, message, update;
    struct line message_bias, update_bias, sources;
    struct rows out, gradient, x_gradient, values_gradient, message_gradient, update_gradient;
    struct line message_bias_gradient, update_bias_gradient;
};
enum answer principal_forward(const struct aggregation *call);
enum answer principal_backward(const struct aggregation *call);

/* A PNA layer with towers: of each of its streams, h and p, the aggregation and the map that mixes the towers. */
struct tower_layer {
    integer residual, scaled;
    double dropout;
    uint64_t seed[2];
    struct rows message[2], update[2], mix[2];
    struct line message_bias[2], update_bias[2], mix_bias[2];
    struct normal norm;
};

/* PNA layers with towers, one after the other: at most sixteen in a call. h and p are numbers 0 and 1, the second with
   `positions` only; the aggregation of h sees both. `kinds`, `scale` and `kind` as in an aggregation; `table`
   [rows, width of an edge] is what the edges have, each that row which `kind` says, or its own where it is left out, and
   what a row of `message` takes behind source and target. `size_scale` [nodes] is for layers that are `scaled`.

   `memory` of so many layers as there are `memories`, [nodes * (streams row + 3 * streams * padded) + 3 * width] each:
   what the backward pass needs of the forward pass. Without one there may be two, used by turns.

   Backward: of `out_gradient` some may be left out. `parameters_gradient` is that of each layer's message, update and
   mix, weight and bias in turns, stream by stream, then of its normalisation, side by side. */
struct tower_layers {
    integer threads, count, memories, positions, towers;
    struct indices kinds, kind;
    struct edges edges;
    struct rows in[2], out[2], table, scale;
    struct line size_scale, memory[16];
    struct tower_layer layer[16];
    struct rows out_gradient[2], in_gradient[2], table_gradient;
    struct line parameters_gradient;
};
enum answer tower_layers_forward(const struct tower_layers *call);
enum answer tower_layers_backward(const struct tower_layers *call);

/* Attention over all pairs of nodes of each graph. `maps` [nodes, 5 * padded]: q, k, v, and q and k of the pairs that
   are not edges; `edge_maps` [edges, padded]. Factors of edges and of added pairs: numbers, or matrices
   [graphs * side, side]. `powers` [edges, heads] and `totals` [nodes, heads] are what the backward pass needs of the
   forward pass. */
struct attending {
    integer threads, heads, width;
    struct indices graph_start;
    struct edges edges;
    struct rows maps, edge_maps;
    struct line channel;
    double factor[2];
    struct rows factor_matrix[2], powers, totals, out;
    struct rows gradient, maps_gradient, edge_maps_gradient, channel_gradient, factor_gradient;
};
enum answer attention_forward(const struct attending *call);
enum answer attention_backward(const struct attending *call);

/* A layer of full attention. Maps: Q, K, V, Q_added, K_added, E, E_added of the structure's attention, then of that of
   the positions, then O, O_p, W1, W2, of which the last four have a bias. Without positions theirs are left out. Seeds
   are those of the structure's attention, of the hidden layer and of the positions' attention. Factors of edges and of
   added pairs: numbers, times matrices [graphs * side, side] where there are some. */
struct full_layer {
    integer residual;
    double dropout;
    uint64_t seed[3];
    double factor[2];
    struct rows factor_matrix[2];
    struct rows map[18];
    struct line bias[4];
    struct normal norm[2]; /* behind the attention and behind the feed-forward part */
};

/* Layers of full attention one after the other: at most sixteen in a call. `in`, `out` and their gradients, which have
   padded rows, are those of h and p. `edge` are the features of edges: that row which `kind` [edges] says, or a row for
   each edge where it is left out; `added` are those of all pairs that are not edges.

   `memory` of each layer is what the backward pass needs of the forward pass (full_memory numbers). Where it is left
   out there is none, and the normalisations are not of the rows.

   Backward: of `out_gradient` one may be left out. `parameters_gradient` is that of each layer's maps, then of their
   biases, then of weight and bias of its normalisations, side by side; factor_gradient [2 * count] is that of the
   numbers. */
struct full_layers {
    integer threads, count, heads, positions;
    struct indices graph_start, kind;
    struct edges edges;
    struct rows edge;
    struct line added;
    struct rows in[2], out[2];
    struct line memory[16];
    struct full_layer layer[16];
    struct rows out_gradient[2], in_gradient[2], edge_gradient;
    struct line added_gradient, factor_gradient, parameters_gradient;
};
integer full_memory(integer nodes, integer edges, integer width, integer heads, integer positions);
enum answer full_layers_forward(const struct full_layers *call);
enum answer full_layers_backward(const struct full_layers *call);

/* Graphs one after the other, the edges of each together; `weight` may be left out. Functions that take them serve
   those of at most `largest` nodes, and leave the rows of others as they are. */
struct small_graphs {
    integer largest;
    struct indices node_start, edge_start, source, target;
    double *weight;
    integer weights;
};

/* out [nodes, k]: the diagonals of the powers of the walk matrix of each graph. */
struct walking {
    integer threads;
    struct small_graphs graphs;
    struct rows out;
};
enum answer return_probabilities(const struct walking *call);

/* vectors [nodes, k], values [graphs, k]: eigenvectors 1 to k of the normalised Laplacian of each graph made undirected,
   the largest entry of each positive, and their eigenvalues. What a graph does not have is left as it is. */
struct eigenpairs {
    integer threads;
    struct small_graphs graphs;
    struct rows vectors, values;
};
enum answer laplacian_eigenpairs(const struct eigenpairs *call);
