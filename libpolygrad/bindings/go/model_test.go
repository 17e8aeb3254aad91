package polygrad

// On the files of tests/binding_models.py, in the folder that POLYGRAD_TEST_FILES names.

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

func file(name string) string { return filepath.Join(os.Getenv("POLYGRAD_TEST_FILES"), name) }

func opened(t *testing.T, name string, options Options) *Model {
	t.Helper()
	model, err := Open(file(name), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { model.Close() })
	return model
}

func wantKind(t *testing.T, kind Kind, err error) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("expected an error of kind %v, got %v", kind, err)
	}
}

func wantEqual(t *testing.T, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("expected %v, got %v", want, got)
	}
}

func must[T any](t *testing.T) func(T, error) T {
	t.Helper()
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

var (
	x = []float32{1, 2, 3, -1, -2, 0.5, 0, 1}
	y = []int32{0, 1, 2, 1}
)

func train(t *testing.T, model *Model, steps int) []float32 {
	t.Helper()
	var losses []float32
	for i := 0; i < steps; i++ {
		outputs := must[map[string]Tensor](t)(model.Run(Inputs{"x": x, "y": y}))
		losses = append(losses, must[float32](t)(Item[float32](outputs["loss"])))
	}
	return losses
}

func TestModelSaysWhatItHas(t *testing.T) {
	model := opened(t, "training.pgrd", Options{})
	wantEqual(t, []string{model.Device(), model.Kind(), model.Settings()}, []string{"WASM", "", "{}"})
	wantEqual(t, model.Inputs(), []TensorInfo{
		{"x", Float32, []Axis{{4, ""}, {2, ""}}, false},
		{"y", Int32, []Axis{{4, ""}}, false},
	})
	wantEqual(t, model.Outputs(), []TensorInfo{{"loss", Float32, nil, false}})
	names := map[string]TensorInfo{}
	for _, info := range model.Values() {
		names[info.Name] = info
	}
	wantEqual(t, names["weight"].Shape, []Axis{{3, ""}, {2, ""}})
	wantEqual(t, names["optimizer.lr"].DType.String(), "float32")
	sizes := opened(t, "sizes.pgrd", Options{})
	wantEqual(t, sizes.Inputs()[0].Shape, []Axis{{8, "n"}, {3, ""}})
	wantEqual(t, sizes.Entries()[0].Variables, []Variable{{"n", 1, 8}})
}

func TestTrainingStaysInTheModel(t *testing.T) {
	model := opened(t, "training.pgrd", Options{})
	before := must[Tensor](t)(model.Value("weight"))
	losses := train(t, model, 20)
	if !(losses[19] < losses[0]/2) {
		t.Error(losses)
	}
	if after := must[Tensor](t)(model.Value("weight")); reflect.DeepEqual(after, before) {
		t.Error("the weight is what it was")
	}
}

func TestSavedModelGoesOnWhereItWas(t *testing.T) {
	model := opened(t, "training.pgrd", Options{})
	train(t, model, 5)
	saved := must[[]byte](t)(model.SaveBytes())
	path := filepath.Join(t.TempDir(), "values.safetensors")
	if err := model.Save(path); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(must[[]byte](t)(os.ReadFile(path)), saved) {
		t.Error("the file has other bytes")
	}
	expected := train(t, model, 3)
	other := opened(t, "training.pgrd", Options{})
	for _, load := range []func() error{
		func() error { return other.LoadBytes(saved) },
		func() error { return other.Load(path) },
	} {
		if err := load(); err != nil {
			t.Fatal(err)
		}
		wantEqual(t, train(t, other, 3), expected)
	}
	wantKind(t, ErrIo, other.Load(file("nowhere")))
	wantKind(t, ErrDamaged, other.LoadBytes(saved[:20]))
}

func TestValuesAreReadAndWritten(t *testing.T) {
	model := opened(t, "training.pgrd", Options{})
	bias := func() any { return must[Tensor](t)(model.Value("bias")).Data }
	if err := model.SetValue("bias", NewTensor([]float32{1, 2, 3}, 3)); err != nil {
		t.Fatal(err)
	}
	wantEqual(t, bias(), []float32{1, 2, 3})
	view := must[Tensor](t)(model.ValueView("bias"))
	must[[]float32](t)(Elements[float32](view))[1] = 5
	wantEqual(t, bias(), []float32{1, 5, 3})
	if err := model.SetValue("optimizer.lr", Tensor{Data: []float32{0}}); err != nil {
		t.Fatal(err)
	}
	losses := train(t, model, 2)
	wantEqual(t, losses[0], losses[1])
	weight := must[Tensor](t)(model.ValueView("weight"))
	wantEqual(t, weight.Shape, []int{3, 2})
	wantKind(t, ErrShape, model.SetValue("bias", Tensor{Data: []float32{1}}))
	wantKind(t, ErrShape, model.SetValue("weight", NewTensor(make([]float32, 6), 2, 3)))
	wantKind(t, ErrArgument, model.SetValue("bias", Tensor{Data: []int32{1, 2, 3}}))
	wantKind(t, ErrNotFound, model.SetValue("scale", Tensor{Data: []float32{1}}))
	_, err := model.Value("scale")
	wantKind(t, ErrNotFound, err)
	_, err = Elements[int32](view)
	wantKind(t, ErrArgument, err)
	_, err = Item[float32](view)
	wantKind(t, ErrShape, err)
}

// places are 100 i + 10 j + k at each place of (2, 3, 4), and of (4, 2, 3) with the axes in the order 2, 0, 1.
func places[T Element](make func(n int) T) (rows, permuted []T) {
	for i := 0; i < 2; i++ {
		for j := 0; j < 3; j++ {
			for k := 0; k < 4; k++ {
				rows = append(rows, make(100*i+10*j+k))
			}
		}
	}
	for k := 0; k < 4; k++ {
		for i := 0; i < 2; i++ {
			for j := 0; j < 3; j++ {
				permuted = append(permuted, make(100*i+10*j+k))
			}
		}
	}
	return rows, permuted
}

func TestElementsOfAllDtypesAreInRowMajorOrder(t *testing.T) {
	inputs, want := Inputs{}, map[string]any{}
	add := func(name string, rows, permuted any) { inputs["x."+name], want[name] = rows, permuted }
	rows8, permuted8 := places(func(n int) uint8 { return uint8(n % 2) })
	add("bool", rows8, permuted8)
	rowsI8, permutedI8 := places(func(n int) int8 { return int8(n - 100) })
	add("int8", rowsI8, permutedI8)
	rows8, permuted8 = places(func(n int) uint8 { return uint8(n) })
	add("uint8", rows8, permuted8)
	rowsI16, permutedI16 := places(func(n int) int16 { return int16(n - 500) })
	add("int16", rowsI16, permutedI16)
	rows16, permuted16 := places(func(n int) uint16 { return uint16(60000 + n) })
	add("uint16", rows16, permuted16)
	rowsI32, permutedI32 := places(func(n int) int32 { return int32(n - 70000) })
	add("int32", rowsI32, permutedI32)
	rows32, permuted32 := places(func(n int) uint32 { return 4000000000 + uint32(n) })
	add("uint32", rows32, permuted32)
	rowsI64, permutedI64 := places(func(n int) int64 { return int64(n) - 1<<60 })
	add("int64", rowsI64, permutedI64)
	rows64, permuted64 := places(func(n int) uint64 { return 1<<63 + uint64(n) })
	add("uint64", rows64, permuted64)
	halves, permutedHalves := places(func(n int) uint16 { return uint16(0x3c00 + n) })
	add("float16", halves, permutedHalves)
	add("bfloat16", halves, permutedHalves)
	rowsF32, permutedF32 := places(func(n int) float32 { return float32(n) + 0.5 })
	add("float32", NewTensor(rowsF32, 2, 3, 4), permutedF32)
	rowsF64, permutedF64 := places(func(n int) float64 { return float64(n) + 0.1 })
	add("float64", rowsF64, permutedF64)

	model := opened(t, "permuted.pgrd", Options{})
	outputs := must[map[string]Tensor](t)(model.Run(inputs))
	wantEqual(t, len(outputs), len(want))
	for name, elements := range want {
		wantEqual(t, outputs[name], Tensor{elements, []int{4, 2, 3}})
	}
}

func TestVariablesComeFromShapesCountsOrByName(t *testing.T) {
	six := []float32{1, 2, 3, 4, 5, 6}
	model := opened(t, "sizes.pgrd", Options{})
	for _, input := range []any{six, NewTensor(six, 2, 3)} {
		outputs := must[map[string]Tensor](t)(model.Run(Inputs{"x": input}))
		wantEqual(t, outputs["twice"], NewTensor([]float32{2, 4, 6, 8, 10, 12}, 2, 3))
		wantEqual(t, outputs["sum"], NewTensor([]float32{5, 7, 9}, 3))
	}
	first := opened(t, "first.pgrd", Options{})
	for k := 1; k <= 6; k += 5 {
		outputs := must[map[string]Tensor](t)(first.Run(Inputs{"x": six, "k": k}))
		wantEqual(t, outputs["first"], NewTensor([]float32{2, 3, 4, 5, 6, 7}[:k], k))
	}
	for _, k := range []any{0, 7, "2"} {
		_, err := first.Run(Inputs{"x": six, "k": k})
		wantKind(t, ErrArgument, err)
	}
	_, err := first.Run(Inputs{"x": six})
	wantKind(t, ErrArgument, err)
	for _, inputs := range []Inputs{
		{"x": six, "n": 3},
		{"x": NewTensor(six, 3, 2)},
		{"x": NewTensor(six, 1, 3)},
		{"x": six[:5]},
		{"x": make([]float32, 27)},
	} {
		if _, err := model.Run(inputs); !errors.Is(err, ErrShape) && !errors.Is(err, ErrArgument) {
			t.Errorf("%v: %v", inputs, err)
		}
	}
}

func TestInputsThatAreNotTheModelsAreErrors(t *testing.T) {
	model := opened(t, "training.pgrd", Options{})
	for _, inputs := range []Inputs{{"x": x}, {"x": x, "z": y}, {"x": x, "y": y, "z": y}} {
		_, err := model.Run(inputs)
		wantKind(t, ErrArgument, err)
		if !strings.Contains(err.Error(), "run: expected the inputs [x y], got [x") {
			t.Error(err)
		}
	}
	_, err := model.Run(Inputs{"x": y, "y": x})
	wantKind(t, ErrArgument, err)
	_, err = model.Run(Inputs{"x": nil, "y": y})
	wantKind(t, ErrArgument, err)
	_, err = model.Run(Inputs{"x": x[:6], "y": y})
	wantKind(t, ErrShape, err)
	train(t, model, 1)
}

func TestFilesThatCannotBeOpenedAreErrors(t *testing.T) {
	data := must[[]byte](t)(os.ReadFile(file("training.pgrd")))
	must[*Model](t)(OpenBytes(data, Options{})).Close()
	data[len(data)-1] ^= 1
	_, err := OpenBytes(data, Options{})
	wantKind(t, ErrDigest, err)
	_, err = OpenBytes([]byte("text"), Options{})
	wantKind(t, ErrFormat, err)
	for _, c := range []struct {
		name    string
		options Options
		kind    Kind
	}{
		{"nowhere.pgrd", Options{}, ErrIo},
		{"training.pgrd", Options{MaxBytes: 10}, ErrMemory},
		{"training.pgrd", Options{Wasmtime: file("nowhere.so")}, ErrNoEngine},
		{"native.pgrd", Options{}, ErrTrust},
	} {
		_, err := Open(file(c.name), c.options)
		wantKind(t, c.kind, err)
	}
}

func TestNativeCodeRunsWhereItIsTrusted(t *testing.T) {
	model := opened(t, "native.pgrd", Options{Native: true, Threads: 2})
	outputs := must[map[string]Tensor](t)(model.Run(Inputs{"x": []float32{1, 2, 3}}))
	wantEqual(t, outputs["twice"].Data, []float32{2, 4, 6})
}

func TestContextEndsARun(t *testing.T) {
	model := opened(t, "endless.pgrd", Options{Stoppable: true})
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err := model.RunContext(ctx, nil)
	wantKind(t, ErrInterrupted, err)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	_, err = model.RunContext(ctx, nil) // done before it begins
	wantKind(t, ErrInterrupted, err)
	ctx, cancel = context.WithCancel(context.Background())
	go func() {
		time.Sleep(20 * time.Millisecond)
		cancel()
	}()
	if _, err = model.RunEntry(ctx, "", nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if time.Since(start) > 20*time.Second {
		t.Error("it took too long")
	}
	wantEqual(t, must[Tensor](t)(model.Value("x")).Data, []int32{0, 0})
	_, err = opened(t, "endless.pgrd", Options{}).RunContext(context.Background(), nil)
	wantKind(t, ErrArgument, err)
}

func TestBundleHasEntriesAndFiles(t *testing.T) {
	model := opened(t, "bundle.pgrd", Options{})
	wantEqual(t, model.Kind(), "corpus")
	wantEqual(t, model.Entries()[0].Name, "main")
	ctx := context.Background()
	outputs := must[map[string]Tensor](t)(model.RunEntry(ctx, "main", Inputs{"x": []int32{1, 4}, "n": 3}))
	wantEqual(t, outputs["y"].Data.([]int32)[1], int32(21))
	_, err := model.RunEntry(ctx, "other", nil)
	wantKind(t, ErrNotFound, err)
	_, err = model.File("nowhere")
	wantKind(t, ErrNotFound, err)
	wantEqual(t, string(must[[]byte](t)(model.File("notes.txt"))), "text")
	wantEqual(t, model.Settings(), `{"scale":0.5}`)
}

func TestClosedModelIsAnError(t *testing.T) {
	model := opened(t, "training.pgrd", Options{})
	model.Close()
	model.Close()
	_, err := model.Run(Inputs{"x": x, "y": y})
	wantKind(t, ErrClosed, err)
	_, err = model.Value("bias")
	wantKind(t, ErrClosed, err)
	_, err = model.ValueView("bias")
	wantKind(t, ErrClosed, err)
	_, err = model.SaveBytes()
	wantKind(t, ErrClosed, err)
	wantKind(t, ErrClosed, model.Load(file("nowhere")))
	wantKind(t, ErrClosed, model.SetValue("bias", Tensor{Data: []float32{1, 2, 3}}))
	wantEqual(t, model.Device(), "")
}

func TestCollectorClosesModels(t *testing.T) {
	for i := 0; i < 20; i++ {
		train(t, must[*Model](t)(Open(file("training.pgrd"), Options{})), 1)
		runtime.GC()
	}
}

func TestGoroutinesShareAModel(t *testing.T) {
	shared, alone := opened(t, "training.pgrd", Options{}), opened(t, "training.pgrd", Options{})
	var all sync.WaitGroup
	for i := 0; i < 4; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for i := 0; i < 5; i++ {
				if _, err := shared.Run(Inputs{"x": x, "y": y}); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	all.Wait()
	train(t, alone, 20)
	wantEqual(t, must[[]byte](t)(shared.SaveBytes()), must[[]byte](t)(alone.SaveBytes()))
}
