package polygrad

import (
	"fmt"
	"reflect"
	"unsafe"
)

// Element is the type of a tensor's elements. Floats in 16 bits are uint16, floats in 8 bits and bool uint8:
// their bits.
type Element interface {
	int8 | uint8 | int16 | uint16 | int32 | uint32 | int64 | uint64 | float32 | float64
}

// Tensor is a slice of elements in row-major order, such as a []float32, and their shape. A Tensor that is an
// input may do without the shape; then it has the one of the input's description.
type Tensor struct {
	Data  any
	Shape []int
}

// NewTensor is a Tensor of this shape.
func NewTensor[T Element](elements []T, shape ...int) Tensor {
	return Tensor{Data: elements, Shape: shape}
}

// Elements gives the slice of a Tensor. The error is ErrArgument where its elements have another type.
func Elements[T Element](t Tensor) ([]T, error) {
	if elements, ok := t.Data.([]T); ok {
		return elements, nil
	}
	var want []T
	return nil, argument("Elements: expected %T, got %T", want, t.Data)
}

// Item gives the one element of a Tensor, such as a loss.
func Item[T Element](t Tensor) (T, error) {
	elements, err := Elements[T](t)
	if err == nil && len(elements) == 1 {
		return elements[0], nil
	}
	var zero T
	if err == nil {
		err = &Error{Kind: ErrShape, Message: fmt.Sprintf("Item: expected one element, got %d", len(elements))}
	}
	return zero, err
}

// Axis is an axis of a shape: its size, or the name of the Variable that is its size, which is at most Size.
type Axis struct {
	Size     int
	Variable string
}

// TensorInfo describes an input, an output, or a value: a parameter or a state.
type TensorInfo struct {
	Name  string
	DType DType
	Shape []Axis
	// Whether runs may write it.
	IsState bool
}

// Variable is an integer that each run is given.
type Variable struct {
	Name   string
	Lo, Hi int64
}

// sizes are those of a shape with these values of Variables; false where one has none.
func (t *TensorInfo) sizes(variables map[string]int) ([]int, bool) {
	out := make([]int, len(t.Shape))
	for i, axis := range t.Shape {
		size, known := axis.Size, true
		if axis.Variable != "" {
			size, known = variables[axis.Variable]
		}
		if !known {
			return nil, false
		}
		out[i] = size
	}
	return out, true
}

// slice is a slice over memory of the library, or a new one where that is nil.
func slice[T Element](memory unsafe.Pointer, count int) any {
	if memory == nil {
		return make([]T, count)
	}
	return unsafe.Slice((*T)(memory), count)
}

// elementsOf is a slice, as above, of the type that elements of a dtype have; nil for an unknown dtype.
func elementsOf(dtype DType, memory unsafe.Pointer, count int) any {
	switch dtype {
	case Bool, Uint8, Fp8E4M3, Fp8E5M2:
		return slice[uint8](memory, count)
	case Int8:
		return slice[int8](memory, count)
	case Int16:
		return slice[int16](memory, count)
	case Uint16, Float16, Bfloat16:
		return slice[uint16](memory, count)
	case Int32:
		return slice[int32](memory, count)
	case Uint32:
		return slice[uint32](memory, count)
	case Int64:
		return slice[int64](memory, count)
	case Uint64:
		return slice[uint64](memory, count)
	case Float32:
		return slice[float32](memory, count)
	case Float64:
		return slice[float64](memory, count)
	}
	return nil
}

// memoryOf gives the address, the count and the bytes of elements that are right for a dtype; false for others.
func memoryOf(dtype DType, elements any) (unsafe.Pointer, int, int, bool) {
	kind := reflect.TypeOf(elementsOf(dtype, nil, 0))
	if kind == nil || reflect.TypeOf(elements) != kind {
		return nil, 0, 0, false
	}
	v := reflect.ValueOf(elements)
	return v.UnsafePointer(), v.Len(), v.Len() * int(kind.Elem().Size()), true
}

func product(sizes []int) int {
	n := 1
	for _, size := range sizes {
		n *= size
	}
	return n
}
