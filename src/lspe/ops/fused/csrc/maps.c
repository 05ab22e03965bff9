/* Linear maps [outputs, inputs] of one input as one product of matrices. */
#include "real.h"

static enum answer check(const struct packing *call)
{
    const integer maps = call->maps, outputs = call->weight[0].count, padded = maps > 0 ? call->packed.width / maps : 0;
    NEED_SIZES(maps >= 1 && maps <= 8 && call->inputs >= 0 && padded >= outputs);
    NEED_SIZES(sized(call->packed, call->packed.count, maps * padded) && call->packed.count >= call->inputs);
    for (integer m = 0; m < maps; m++) {
        NEED_SIZES(sized(call->weight[m], outputs, call->weight[m].width));
        NEED_SIZES(call->first[m] >= 0 && call->first[m] + call->inputs <= call->weight[m].width);
    }
    return DONE;
}

enum answer pack_maps(const struct packing *call)
{
    const enum answer answer = check(call);
    if (answer != DONE)
        return answer;
    const integer padded = call->packed.width / call->maps;
    for (integer i = 0; i < call->packed.count; i++)
        memset(row_at(call->packed, i), 0, (size_t)call->packed.width * sizeof(real));
    for (integer m = 0; m < call->maps; m++)
        for (integer i = 0; i < call->inputs; i++)
            for (integer o = 0; o < call->weight[m].count; o++)
                row_at(call->packed, i)[m * padded + o] = row_at(call->weight[m], o)[call->first[m] + i];
    return DONE;
}

enum answer unpack_maps(const struct packing *call)
{
    const enum answer answer = check(call);
    if (answer != DONE)
        return answer;
    const integer padded = call->packed.width / call->maps;
    for (integer m = 0; m < call->maps; m++)
        for (integer o = 0; o < call->weight[m].count; o++)
            for (integer i = 0; i < call->inputs; i++)
                row_at(call->weight[m], o)[call->first[m] + i] = row_at(call->packed, i)[m * padded + o];
    return DONE;
}
