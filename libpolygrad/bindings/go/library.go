package polygrad

// The shared library: opened once, by the first model. It is opened and not linked, so that this package is built
// without it, and so that a program runs with every library that has the functions that it was built for.

/*
#cgo linux LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdlib.h>
#include "polygrad.h"

// The table of an open library, or NULL.
static const pg_api *table(void *library) {
  const pg_api *(*get)(uint32_t) = (const pg_api *(*)(uint32_t))dlsym(library, "pg_get_api");
  return get ? get(PG_API_VERSION) : NULL;
}
*/
import "C"

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"unsafe"
)

var loaded struct {
	once sync.Once
	api  *C.pg_api
	err  error
}

// library gives the table of functions.
func library() (*C.pg_api, error) {
	loaded.once.Do(func() { loaded.api, loaded.err = openLibrary() })
	return loaded.api, loaded.err
}

func openLibrary() (*C.pg_api, error) {
	runtime.LockOSThread() // the text of dlerror is a thread's
	defer runtime.UnlockOSThread()
	name := "libpolygrad.so.0"
	if runtime.GOOS == "darwin" {
		name = "libpolygrad.dylib"
	}
	if path := os.Getenv("POLYGRAD_LIBRARY"); path != "" {
		name = path
	}
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	opened := C.dlopen(text, C.RTLD_NOW)
	if opened == nil {
		return nil, noLibrary(C.GoString(C.dlerror()))
	}
	api := C.table(opened)
	if api == nil {
		return nil, noLibrary(name + " is older than this package")
	}
	return api, nil
}

func noLibrary(reason string) error {
	advice := "install libpolygrad, or let POLYGRAD_LIBRARY be its path"
	return &Error{Kind: ErrNoLibrary, Message: fmt.Sprintf("libpolygrad: %s: %s", reason, advice)}
}
