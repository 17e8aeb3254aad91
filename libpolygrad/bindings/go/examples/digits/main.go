// Trains the digit classifier that `examples/export_digits.py FOLDER` exported, without Python:
//
//	go run ./examples/digits FOLDER [--native]
//
// Prints one line of JSON, as `examples/digits.py --json` does, and saves trained.safetensors to the folder.
package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"sort"
	"time"

	"polygrad"
)

const batch, pixels = 64, 64

type digits struct {
	images []uint8
	labels []int32
}

func readDigits(folder, name string) (digits, error) {
	images, err := os.ReadFile(filepath.Join(folder, name+"_images.u8"))
	if err != nil {
		return digits{}, err
	}
	labels, err := readInts(filepath.Join(folder, name+"_labels.i32"))
	return digits{images, labels}, err
}

func readInts(path string) ([]int32, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	out := make([]int32, len(data)/4)
	return out, binary.Read(bytes.NewReader(data), binary.LittleEndian, out)
}

// evaluate gives loss and accuracy.
func evaluate(model *polygrad.Model, d digits) (float32, float32, error) {
	outputs, err := model.Run(polygrad.Inputs{"images": d.images, "labels": d.labels})
	if err != nil {
		return 0, 0, err
	}
	loss, err := polygrad.Item[float32](outputs["loss"])
	if err != nil {
		return 0, 0, err
	}
	accuracy, err := polygrad.Item[float32](outputs["accuracy"])
	return loss, accuracy, err
}

// train takes all steps in order, and gives the seconds of each.
func train(step *polygrad.Model, training digits, order []int32) ([]float64, error) {
	var seconds []float64
	for _, number := range order {
		from, to := int(number)*batch, int(number+1)*batch
		start := time.Now()
		outputs, err := step.Run(polygrad.Inputs{
			"images": training.images[from*pixels : to*pixels],
			"labels": training.labels[from:to],
		})
		if err != nil {
			return nil, err
		}
		if _, err := polygrad.Item[float32](outputs["loss"]); err != nil {
			return nil, err
		}
		seconds = append(seconds, time.Since(start).Seconds())
	}
	return seconds, nil
}

// copyValues lets a model have the parameters of another.
func copyValues(to, from *polygrad.Model) error {
	for _, info := range to.Values() {
		value, err := from.Value(info.Name)
		if err != nil {
			return err
		}
		if err := to.SetValue(info.Name, value); err != nil {
			return err
		}
	}
	return nil
}

func run(folder string, options polygrad.Options) error {
	training, err := readDigits(folder, "train")
	if err != nil {
		return err
	}
	heldOut, err := readDigits(folder, "test")
	if err != nil {
		return err
	}
	order, err := readInts(filepath.Join(folder, "order.i32"))
	if err != nil {
		return err
	}

	step, err := polygrad.Open(filepath.Join(folder, "training.pgrd"), options)
	if err != nil {
		return err
	}
	defer step.Close()
	seconds, err := train(step, training, order)
	if err != nil {
		return err
	}
	if err := step.Save(filepath.Join(folder, "trained.safetensors")); err != nil {
		return err
	}

	evaluation, err := polygrad.Open(filepath.Join(folder, "evaluation.pgrd"), options)
	if err != nil {
		return err
	}
	defer evaluation.Close()
	if err := copyValues(evaluation, step); err != nil {
		return err
	}
	loss, _, err := evaluate(evaluation, training)
	if err != nil {
		return err
	}
	_, accuracy, err := evaluate(evaluation, heldOut)
	if err != nil {
		return err
	}
	first, later, total := seconds[0], seconds[1:], 0.0
	for _, s := range later {
		total += s
	}
	sort.Float64s(later)
	line, err := json.Marshal(map[string]any{
		"host":             "go",
		"device":           step.Device(),
		"steps_per_second": float64(len(later)) / total,
		"compile_seconds":  first - later[len(later)/2],
		"final_loss":       loss,
		"test_accuracy":    accuracy,
	})
	fmt.Println(string(line))
	return err
}

func main() {
	if len(os.Args) < 2 {
		log.Fatal("expected the folder of the exported files")
	}
	native := len(os.Args) > 2 && os.Args[2] == "--native"
	if err := run(os.Args[1], polygrad.Options{Native: native}); err != nil {
		log.Fatal(err)
	}
}
