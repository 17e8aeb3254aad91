package polygrad

import (
	"fmt"
	"reflect"
	"sort"
	"unsafe"
)

// Inputs are what a run is given, by name: slices of elements in row-major order ([]float32), Tensors, and for
// Variables ints. A slice has the shape of the input's description; if one axis of it is a Variable, the number
// of elements tells its value.
type Inputs map[string]any

type input struct {
	info  *TensorInfo
	data  unsafe.Pointer
	count int
	bytes int
	shape []int // nil: not said
}

// resolve gives the inputs in order, and the values of the Variables by name.
func resolve(entry *Entry, given Inputs) ([]input, map[string]int, error) {
	values, used := map[string]int{}, 0
	for _, v := range entry.Variables {
		if value := reflect.ValueOf(given[v.Name]); value.IsValid() && value.CanInt() {
			values[v.Name], used = int(value.Int()), used+1
		}
	}
	inputs := make([]input, len(entry.Inputs))
	for i := range entry.Inputs {
		info := &entry.Inputs[i]
		value, ok := given[info.Name]
		if !ok {
			return nil, nil, wrongNames(entry, given)
		}
		tensor, ok := value.(Tensor)
		if !ok {
			tensor = Tensor{Data: value}
		}
		data, count, bytes, ok := memoryOf(info.DType, tensor.Data)
		if !ok {
			return nil, nil, wrongType(info, tensor.Data)
		}
		inputs[i] = input{info, data, count, bytes, tensor.Shape}
	}
	if used+len(inputs) != len(given) {
		return nil, nil, wrongNames(entry, given)
	}
	for _, in := range inputs {
		if in.shape != nil && !in.bindShape(values) {
			return nil, nil, wrongShape(in.info, fmt.Sprintf("%v with %d elements", in.shape, in.count))
		}
	}
	for _, in := range inputs {
		if !in.bindCount(values) {
			return nil, nil, wrongShape(in.info, fmt.Sprintf("%d elements", in.count))
		}
	}
	for _, v := range entry.Variables {
		if _, ok := values[v.Name]; !ok {
			return nil, nil, wrongNames(entry, given)
		}
	}
	return inputs, values, nil
}

// bindShape lets Variables be the sizes of the shape; false where they do not fit.
func (in *input) bindShape(variables map[string]int) bool {
	if len(in.shape) != len(in.info.Shape) || product(in.shape) != in.count {
		return false
	}
	for i, axis := range in.info.Shape {
		want := axis.Size
		if axis.Variable != "" {
			if _, known := variables[axis.Variable]; !known {
				variables[axis.Variable] = in.shape[i]
			}
			want = variables[axis.Variable]
		}
		if in.shape[i] != want {
			return false
		}
	}
	return true
}

// bindCount lets the one Variable that is not known be what the number of elements says; false where this number
// is another than the shape's, or says nothing.
func (in *input) bindCount(variables map[string]int) bool {
	unknown, known := "", 1
	for _, axis := range in.info.Shape {
		size, ok := axis.Size, true
		if axis.Variable != "" {
			size, ok = variables[axis.Variable]
		}
		if ok {
			known *= size
		} else if unknown == "" {
			unknown = axis.Variable
		} else {
			return false
		}
	}
	if unknown == "" {
		return known == in.count
	}
	if known == 0 || in.count%known != 0 {
		return false
	}
	variables[unknown] = in.count / known
	return true
}

func wrongNames(entry *Entry, given Inputs) error {
	var expected, got []string
	for _, info := range entry.Inputs {
		expected = append(expected, info.Name)
	}
	for _, v := range entry.Variables {
		expected = append(expected, v.Name)
	}
	for name := range given {
		got = append(got, name)
	}
	sort.Strings(got)
	return argument("run: expected the inputs %v, got %v", expected, got)
}

func wrongType(info *TensorInfo, got any) error {
	return argument("%s: expected %T for elements of %v, got %T", info.Name, elementsOf(info.DType, nil, 0), info.DType, got)
}

func wrongShape(info *TensorInfo, got string) error {
	var shape []string
	for _, axis := range info.Shape {
		if axis.Variable != "" {
			shape = append(shape, axis.Variable)
		} else {
			shape = append(shape, fmt.Sprint(axis.Size))
		}
	}
	return &Error{Kind: ErrShape, Message: fmt.Sprintf("%s: expected shape %v, got %s", info.Name, shape, got)}
}
