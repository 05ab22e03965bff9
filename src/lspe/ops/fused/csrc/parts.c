/* Values side by side, added to parts of a vector. */
#include "real.h"

enum answer add_parts(const struct parts *call)
{
    const integer count = call->start.count, *start = call->start.at, *size = call->size.at;
    NEED_SIZES(sized_indices(call->start, count) && sized_indices(call->size, count) && count >= 0);
    integer rest = call->values.count;
    NEED_SIZES(sized_line(call->values, rest) && sized_line(call->vector, call->vector.count));
    for (integer part = 0; part < count; part++) {
        NEED_SIZES(size[part] >= 0 && size[part] <= rest);
        NEED_INDICES(start[part] >= 0 && start[part] <= call->vector.count - size[part]);
        rest -= size[part];
    }
    NEED_SIZES(rest == 0);
    const real *from = call->values.at;
    for (integer part = 0; part < count; part++) {
        for (integer i = 0; i < size[part]; i++)
            call->vector.at[start[part] + i] += from[i];
        from += size[part];
    }
    return DONE;
}
