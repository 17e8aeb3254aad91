package polygrad

/*
#include "polygrad.h"
*/
import "C"

import "fmt"

const (
	// There is no libpolygrad where it was looked for, or one that is older than this package.
	ErrNoLibrary Kind = -1
	// The model is closed.
	ErrClosed Kind = -2
)

// Error is why a call failed. errors.Is(err, polygrad.ErrTrust) asks for a kind.
type Error struct {
	Kind    Kind
	Message string
	cause   error // a context's, where it ended a run
}

func (e *Error) Error() string { return "polygrad: " + e.Message }

// Is says whether the error is of a kind.
func (e *Error) Is(target error) bool {
	kind, ok := target.(Kind)
	return ok && kind == e.Kind
}

// Unwrap gives the error of the context that ended a run, or nil.
func (e *Error) Unwrap() error { return e.cause }

// Error is the name of the kind, so that errors.Is takes it.
func (k Kind) Error() string {
	if name, ok := kindNames[k]; ok {
		return name
	}
	return fmt.Sprintf("kind %d", int32(k))
}

func (d DType) String() string {
	if name, ok := dtypeNames[d]; ok {
		return name
	}
	return fmt.Sprintf("dtype %d", int32(d))
}

func argument(format string, values ...any) error {
	return &Error{Kind: ErrArgument, Message: fmt.Sprintf(format, values...)}
}

// checked is the error of a call of the library, which gets the place for it.
func checked(call func(*C.pg_error) C.pg_status) error {
	var e C.pg_error
	if status := call(&e); status != C.PG_OK {
		return &Error{Kind: Kind(status), Message: C.GoString(&e.message[0])}
	}
	return nil
}
