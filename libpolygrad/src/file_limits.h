/* Versions and limits of exported files: the numbers of polygrad/runtime. */

#ifndef PG_FILE_LIMITS_H
#define PG_FILE_LIMITS_H

#define PROGRAM_VERSION 9
#define BUNDLE_VERSION 3
#define OLDEST_BUNDLE 2
#define MAX_HEADER (64u << 20) /* bytes of a header */
#define MAX_DEPTH 32u          /* of lists and objects in each other, in JSON */
#define MAX_INTEGER ((INT64_C(1) << 53) - 1)
#define MAX_BYTES (INT64_C(1) << 40) /* of a buffer, of the arena, and of a part of a file */
#define MAX_RANK 64                  /* sizes in a shape */
#define MAX_ARGUMENTS 1000           /* of a kernel: its pointers and its variables */
#define MAX_THREADS 4096
#define MAX_TARGETS 64                    /* of a file */
#define MAX_INVOCATIONS 1024              /* in a workgroup */
#define MAX_SUBGROUP 128                  /* invocations */
#define MAX_GRID ((INT64_C(1) << 31) - 1) /* workgroups along an axis */
#define MAX_JSON 1000000000u              /* bytes of settings, and of the header of a safetensors file */

#endif
