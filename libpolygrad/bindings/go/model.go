// Package polygrad runs and trains models that polygrad exported (.pgrd files), through libpolygrad.
//
// The library is opened by the first model: the one that the environment variable POLYGRAD_LIBRARY names, else the
// system's libpolygrad.
package polygrad

/*
#include <stdlib.h>
#include "calls.h"
*/
import "C"

import (
	"context"
	"runtime"
	"sync"
	"time"
	"unsafe"
)

// Options say how a file is opened. Zeros trust nothing and limit nothing.
type Options struct {
	// Whether to trust the file: native code of it may do whatever this process may.
	Native bool
	// Whether a context ends runs, which take longer then.
	Stoppable bool
	// Whether the caller knows that the file is whole: digests of weights are not computed then.
	TrustDigests bool
	// The most threads of a run of native code; 0 stands for 1.
	Threads int
	// The most bytes of memory for buffers and weights; 0: no limit.
	MaxBytes uint64
	// The path of wasmtime's shared library, instead of the one that libpolygrad finds.
	Wasmtime string
}

// Entry is a Program of a file. An exported step is one, whose name is empty.
type Entry struct {
	Name      string
	Inputs    []TensorInfo
	Outputs   []TensorInfo
	Variables []Variable
}

// Model is an exported file in memory: its code, parameters and state. What a run writes to state stays in it, so
// an exported training step trains it. Goroutines may share it: its methods wait for one another.
type Model struct {
	mutex     sync.Mutex
	api       *C.pg_api
	handle    *C.pg_model // nil: closed
	stoppable bool
	entries   []Entry
	values    []TensorInfo
}

// Open opens an exported file, which must not be changed while the model is open.
func Open(path string, options Options) (*Model, error) {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	return open(options, func(api *C.pg_api, o *C.pg_options, m **C.pg_model, e *C.pg_error) C.pg_status {
		return C.call_open_path(api, name, o, m, e)
	})
}

// OpenBytes opens an exported file in memory, which is not needed afterwards.
func OpenBytes(data []byte, options Options) (*Model, error) {
	return open(options, func(api *C.pg_api, o *C.pg_options, m **C.pg_model, e *C.pg_error) C.pg_status {
		return C.call_open_memory(api, start(data), C.uint64_t(len(data)), o, m, e)
	})
}

type opener func(*C.pg_api, *C.pg_options, **C.pg_model, *C.pg_error) C.pg_status

func open(options Options, call opener) (*Model, error) {
	api, err := library()
	if err != nil {
		return nil, err
	}
	o := C.pg_options{threads: C.uint32_t(options.Threads), max_bytes: C.uint64_t(options.MaxBytes)}
	flags := map[C.pg_flags]bool{
		C.PG_TRUST_NATIVE:  options.Native,
		C.PG_STOPPABLE:     options.Stoppable,
		C.PG_TRUST_DIGESTS: options.TrustDigests,
	}
	for flag, given := range flags {
		if given {
			o.flags |= flag
		}
	}
	if options.Wasmtime != "" {
		o.wasmtime = C.CString(options.Wasmtime)
		defer C.free(unsafe.Pointer(o.wasmtime))
	}
	m := &Model{api: api, stoppable: options.Stoppable}
	var handle *C.pg_model
	if err := checked(func(e *C.pg_error) C.pg_status { return call(api, &o, &handle, e) }); err != nil {
		return nil, err
	}
	m.handle = handle
	runtime.SetFinalizer(m, func(m *Model) { m.Close() })
	if err := m.describe(); err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

// Close frees the model, and ends all views of it. The garbage collector closes models that are not closed.
func (m *Model) Close() error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.handle != nil {
		C.call_close(m.api, m.handle)
		m.handle = nil
		runtime.SetFinalizer(m, nil)
	}
	return nil
}

// locked calls what uses the handle, alone.
func (m *Model) locked(call func(e *C.pg_error) C.pg_status) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.handle == nil {
		return errClosed
	}
	return checked(call)
}

var errClosed = &Error{Kind: ErrClosed, Message: "the model is closed"}

// Entries are the Programs of the file, which share parameters and state.
func (m *Model) Entries() []Entry { return m.entries }

// Inputs are those of the first entry, the only one of an exported step.
func (m *Model) Inputs() []TensorInfo { return m.entries[0].Inputs }

// Outputs are those of the first entry.
func (m *Model) Outputs() []TensorInfo { return m.entries[0].Outputs }

// Values are the parameters and states of the model.
func (m *Model) Values() []TensorInfo { return m.values }

// Device is the device that the file was exported for, such as "WASM".
func (m *Model) Device() string {
	return m.text(func() *C.char { return C.call_device(m.api, m.handle) })
}

// Kind is what the entries are for, such as "text-generation"; "" for an exported step.
func (m *Model) Kind() string {
	return m.text(func() *C.char { return C.call_kind(m.api, m.handle) })
}

// Settings are those of the file, a JSON object.
func (m *Model) Settings() string {
	return m.text(func() *C.char { return C.call_settings(m.api, m.handle) })
}

func (m *Model) text(call func() *C.char) string {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.handle == nil {
		return ""
	}
	return C.GoString(call())
}

// Run runs the first entry. A training step writes the new state. The outputs are new each time.
func (m *Model) Run(inputs Inputs) (map[string]Tensor, error) {
	return m.run(context.Background(), 0, inputs)
}

// RunContext runs the first entry, and ends it when the context is done: then state is as it was before. The model
// has to be opened as Stoppable.
func (m *Model) RunContext(ctx context.Context, inputs Inputs) (map[string]Tensor, error) {
	if !m.stoppable {
		return nil, argument("RunContext: the model was not opened with Stoppable")
	}
	return m.run(ctx, 0, inputs)
}

// RunEntry runs the entry of a name. The context ends it where the model was opened as Stoppable.
func (m *Model) RunEntry(ctx context.Context, name string, inputs Inputs) (map[string]Tensor, error) {
	for i := range m.entries {
		if m.entries[i].Name == name {
			return m.run(ctx, i, inputs)
		}
	}
	return nil, &Error{Kind: ErrNotFound, Message: "there is no entry " + name}
}

func (m *Model) run(ctx context.Context, index int, given Inputs) (map[string]Tensor, error) {
	entry := &m.entries[index]
	inputs, variables, err := resolve(entry, given)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, ended(err)
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.handle == nil {
		return nil, errClosed
	}
	for i, in := range inputs {
		if err := m.write(index, C.PG_INPUT, i, in.data, in.bytes); err != nil {
			return nil, err
		}
	}
	runtime.KeepAlive(given)
	values := make([]C.int64_t, len(entry.Variables)+1)
	for i, v := range entry.Variables {
		values[i] = C.int64_t(variables[v.Name])
	}
	unwatch := m.watch(ctx)
	err = checked(func(e *C.pg_error) C.pg_status {
		return C.call_run(m.api, m.handle, C.uint32_t(index), &values[0], 0, e)
	})
	unwatch()
	if e, ok := err.(*Error); ok && e.Kind == ErrInterrupted && ctx.Err() != nil {
		return nil, ended(ctx.Err())
	}
	if err != nil {
		return nil, err
	}
	outputs := map[string]Tensor{}
	for i := range entry.Outputs {
		info := &entry.Outputs[i]
		shape, _ := info.sizes(variables)
		if outputs[info.Name], err = m.read(index, C.PG_OUTPUT, i, info.DType, shape); err != nil {
			return nil, err
		}
	}
	return outputs, nil
}

func ended(cause error) error {
	return &Error{Kind: ErrInterrupted, Message: "run: " + cause.Error(), cause: cause}
}

// watch interrupts the run when the context is done, until the function that it gives is called.
func (m *Model) watch(ctx context.Context) func() {
	if !m.stoppable || ctx.Done() == nil {
		return func() {}
	}
	ran, left := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(left)
		select {
		case <-ran:
			return
		case <-ctx.Done():
		}
		for { // the run may not have begun
			C.call_interrupt(m.api, m.handle)
			select {
			case <-ran:
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	return func() {
		close(ran)
		<-left
	}
}

func (m *Model) write(entry int, role C.pg_role, index int, data unsafe.Pointer, bytes int) error {
	return checked(func(e *C.pg_error) C.pg_status {
		return C.call_write(m.api, m.handle, C.uint32_t(entry), role, C.uint32_t(index), data, C.uint64_t(bytes), e)
	})
}

func (m *Model) read(entry int, role C.pg_role, index int, dtype DType, shape []int) (Tensor, error) {
	t := Tensor{Data: elementsOf(dtype, nil, product(shape)), Shape: shape}
	data, _, bytes, ok := memoryOf(dtype, t.Data)
	if !ok {
		return t, &Error{Kind: ErrUnsupported, Message: "elements of " + dtype.String()}
	}
	return t, checked(func(e *C.pg_error) C.pg_status {
		return C.call_read(m.api, m.handle, C.uint32_t(entry), role, C.uint32_t(index), data, C.uint64_t(bytes), e)
	})
}

// Value is a copy of a parameter or state.
func (m *Model) Value(name string) (Tensor, error) {
	index, info, err := m.find(name)
	if err != nil {
		return Tensor{}, err
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.handle == nil {
		return Tensor{}, errClosed
	}
	shape, _ := info.sizes(nil)
	return m.read(0, C.PG_VALUE, index, info.DType, shape)
}

// ValueView is a parameter or state in the model's own memory: writing to the slice writes the value. It is there
// until the model is closed, also by the garbage collector: hold the model, and use no view during a run.
func (m *Model) ValueView(name string) (Tensor, error) {
	index, info, err := m.find(name)
	if err != nil {
		return Tensor{}, err
	}
	var data unsafe.Pointer
	err = m.locked(func(e *C.pg_error) C.pg_status {
		return C.call_view(m.api, m.handle, 0, C.PG_VALUE, C.uint32_t(index), &data, e)
	})
	if err != nil {
		return Tensor{}, err
	}
	shape, _ := info.sizes(nil)
	return Tensor{Data: elementsOf(info.DType, data, product(shape)), Shape: shape}, nil
}

// SetValue lets a parameter or state have these elements.
func (m *Model) SetValue(name string, value Tensor) error {
	index, info, err := m.find(name)
	if err != nil {
		return err
	}
	data, count, bytes, ok := memoryOf(info.DType, value.Data)
	if !ok {
		return wrongType(info, value.Data)
	}
	in := input{info, data, count, bytes, value.Shape}
	if value.Shape != nil && !in.bindShape(nil) || !in.bindCount(nil) {
		return wrongShape(info, "another one")
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.handle == nil {
		return errClosed
	}
	defer runtime.KeepAlive(value.Data)
	return m.write(0, C.PG_VALUE, index, data, bytes)
}

func (m *Model) find(name string) (int, *TensorInfo, error) {
	for i := range m.values {
		if m.values[i].Name == name {
			return i, &m.values[i], nil
		}
	}
	return 0, nil, &Error{Kind: ErrNotFound, Message: "there is no parameter or state " + name}
}

// Save writes all parameters and states to a safetensors file, which replaces the one of that path when it is whole.
func (m *Model) Save(path string) error {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	return m.locked(func(e *C.pg_error) C.pg_status { return C.call_save_values(m.api, m.handle, name, e) })
}

// SaveBytes are the bytes of the file that Save writes.
func (m *Model) SaveBytes() ([]byte, error) {
	var data []byte
	err := m.locked(func(e *C.pg_error) C.pg_status {
		data = make([]byte, C.call_values_size(m.api, m.handle))
		return C.call_save_values_memory(m.api, m.handle, start(data), C.uint64_t(len(data)), e)
	})
	return data, err
}

// Load takes all parameters and states from a safetensors file, which has exactly these.
func (m *Model) Load(path string) error {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	return m.locked(func(e *C.pg_error) C.pg_status { return C.call_load_values(m.api, m.handle, name, e) })
}

// LoadBytes takes all parameters and states from the bytes of a safetensors file.
func (m *Model) LoadBytes(data []byte) error {
	return m.locked(func(e *C.pg_error) C.pg_status {
		return C.call_load_values_memory(m.api, m.handle, start(data), C.uint64_t(len(data)), e)
	})
}

// File is a copy of a file in the file, such as a tokenizer.
func (m *Model) File(name string) ([]byte, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.handle == nil {
		return nil, errClosed
	}
	for i := C.uint32_t(0); i < C.call_file_count(m.api, m.handle); i++ {
		var found *C.char
		var data unsafe.Pointer
		var size C.uint64_t
		err := checked(func(e *C.pg_error) C.pg_status {
			return C.call_file(m.api, m.handle, i, &found, &data, &size, e)
		})
		if err != nil {
			return nil, err
		}
		if C.GoString(found) == name {
			return append([]byte(nil), unsafe.Slice((*byte)(data), int(size))...), nil
		}
	}
	return nil, &Error{Kind: ErrNotFound, Message: "there is no file " + name}
}

// describe asks for the entries and the values of a new model.
func (m *Model) describe() error {
	var err error
	if m.values, err = m.tensors(0, C.PG_VALUE, nil); err != nil {
		return err
	}
	m.entries = make([]Entry, C.call_entry_count(m.api, m.handle))
	for i := range m.entries {
		if err := m.describeEntry(C.uint32_t(i), &m.entries[i]); err != nil {
			return err
		}
	}
	return nil
}

func (m *Model) describeEntry(number C.uint32_t, entry *Entry) error {
	entry.Name = C.GoString(C.call_entry_name(m.api, m.handle, number))
	for i := C.uint32_t(0); i < C.call_variable_count(m.api, m.handle, number); i++ {
		var v C.pg_variable
		err := checked(func(e *C.pg_error) C.pg_status { return C.call_variable(m.api, m.handle, number, i, &v, e) })
		if err != nil {
			return err
		}
		entry.Variables = append(entry.Variables, Variable{C.GoString(v.name), int64(v.lo), int64(v.hi)})
	}
	var err error
	if entry.Inputs, err = m.tensors(number, C.PG_INPUT, entry.Variables); err == nil {
		entry.Outputs, err = m.tensors(number, C.PG_OUTPUT, entry.Variables)
	}
	return err
}

func (m *Model) tensors(entry C.uint32_t, role C.pg_role, variables []Variable) ([]TensorInfo, error) {
	out := make([]TensorInfo, C.call_tensor_count(m.api, m.handle, entry, role))
	for i := range out {
		var t C.pg_tensor
		err := checked(func(e *C.pg_error) C.pg_status {
			return C.call_tensor(m.api, m.handle, entry, role, C.uint32_t(i), &t, e)
		})
		if err != nil {
			return nil, err
		}
		out[i] = TensorInfo{Name: C.GoString(t.name), DType: DType(t.dtype), IsState: t.is_state != 0}
		sizes, numbers := unsafe.Slice(t.shape, int(t.rank)), unsafe.Slice(t.variables, int(t.rank))
		for j, size := range sizes {
			axis := Axis{Size: int(size)}
			if numbers[j] >= 0 {
				axis.Variable = variables[numbers[j]].Name
			}
			out[i].Shape = append(out[i].Shape, axis)
		}
	}
	return out, nil
}

// start is the address of bytes; nil where there are none.
func start(data []byte) unsafe.Pointer {
	if len(data) == 0 {
		return nil
	}
	return unsafe.Pointer(&data[0])
}
