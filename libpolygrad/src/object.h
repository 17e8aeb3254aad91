/* Object files of device CPU: compiled for the large code model, so that all addresses in them are absolute.
 */

#ifndef PG_OBJECT_H
#define PG_OBJECT_H

#include "base.h"

/* Code in memory. */
struct object {
  void *memory;
  size_t nbytes;
  void *function;
};

/* Load the function of a name. `stop`: what the symbol polygrad_stop is. PG_COMPILE for objects that refer to
 * more, or are for another machine. */
pg_status object_load(struct bytes code, struct text name, int64_t *stop, struct object *made,
                      pg_error *error);
void object_unload(struct object *object);

#endif
