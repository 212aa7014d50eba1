package tinymodel

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

// Codes of the file format.
const (
	magic     = "GGUF"
	version   = 3
	alignment = 32 // of the tensor data, in bytes

	typeU32    = uint32(4)
	typeI32    = uint32(5)
	typeF32    = uint32(6)
	typeBool   = uint32(7)
	typeString = uint32(8)
	typeArray  = uint32(9)

	tensorF32 = uint32(0)
	tensorF16 = uint32(1)
)

// pair is one entry of the metadata. Its value is a uint32, float32, bool, string, []string, []float32 or []int32.
type pair struct {
	key   string
	value any
}

// tensor is a matrix of rows x cols, or a vector when rows is 0. at gives its elements.
type tensor struct {
	name string
	cols int
	rows int
	at   func(row, col int) float32
}

// half reports whether the elements are 16 bit: matrices are, vectors are not.
func (t tensor) half() bool { return t.rows > 0 }

func (t tensor) size() int {
	if t.half() {
		return t.rows * t.cols * 2
	}
	return t.cols * 4
}

func padded(n int) int { return (n + alignment - 1) / alignment * alignment }

// fileWriter writes little-endian values and keeps the first error.
type fileWriter struct {
	w   *bufio.Writer
	n   int
	err error
}

func (f *fileWriter) bytes(b []byte) {
	if f.err != nil {
		return
	}
	_, f.err = f.w.Write(b)
	f.n += len(b)
}

func (f *fileWriter) u32(v uint32)   { f.bytes(binary.LittleEndian.AppendUint32(nil, v)) }
func (f *fileWriter) u64(v uint64)   { f.bytes(binary.LittleEndian.AppendUint64(nil, v)) }
func (f *fileWriter) f32(v float32)  { f.u32(math.Float32bits(v)) }
func (f *fileWriter) str(s string)   { f.u64(uint64(len(s))); f.bytes([]byte(s)) }
func (f *fileWriter) pad()           { f.bytes(make([]byte, padded(f.n)-f.n)) }
func (f *fileWriter) half(v float32) { f.bytes(binary.LittleEndian.AppendUint16(nil, float16(v))) }

// writeFile writes a whole file.
func writeFile(w io.Writer, meta []pair, tensors []tensor) error {
	f := &fileWriter{w: bufio.NewWriterSize(w, 1<<16)}
	f.bytes([]byte(magic))
	f.u32(version)
	f.u64(uint64(len(tensors)))
	f.u64(uint64(len(meta)))
	for _, p := range meta {
		f.str(p.key)
		f.value(p.value)
	}
	offset := 0
	for _, t := range tensors {
		f.tensorInfo(t, offset)
		offset += padded(t.size())
	}
	f.pad()
	for _, t := range tensors {
		f.tensorData(t)
		f.pad()
	}
	if f.err == nil {
		f.err = f.w.Flush()
	}
	if f.err != nil {
		return fmt.Errorf("write model: %w", f.err)
	}
	return nil
}

func (f *fileWriter) value(v any) {
	switch v := v.(type) {
	case uint32:
		f.u32(typeU32)
		f.u32(v)
	case float32:
		f.u32(typeF32)
		f.f32(v)
	case bool:
		f.u32(typeBool)
		if v {
			f.bytes([]byte{1})
		} else {
			f.bytes([]byte{0})
		}
	case string:
		f.u32(typeString)
		f.str(v)
	case []string:
		writeArray(f, typeString, v, f.str)
	case []float32:
		writeArray(f, typeF32, v, f.f32)
	case []int32:
		writeArray(f, typeI32, v, func(n int32) { f.u32(uint32(n)) })
	default:
		f.err = fmt.Errorf("metadata value of type %T", v)
	}
}

func writeArray[T any](f *fileWriter, kind uint32, list []T, put func(T)) {
	f.u32(typeArray)
	f.u32(kind)
	f.u64(uint64(len(list)))
	for _, v := range list {
		put(v)
	}
}

func (f *fileWriter) tensorInfo(t tensor, offset int) {
	f.str(t.name)
	if t.half() {
		f.u32(2)
		f.u64(uint64(t.cols)) // the fastest dimension comes first
		f.u64(uint64(t.rows))
		f.u32(tensorF16)
	} else {
		f.u32(1)
		f.u64(uint64(t.cols))
		f.u32(tensorF32)
	}
	f.u64(uint64(offset))
}

func (f *fileWriter) tensorData(t tensor) {
	if !t.half() {
		for c := range t.cols {
			f.f32(t.at(0, c))
		}
		return
	}
	for r := range t.rows {
		for c := range t.cols {
			f.half(t.at(r, c))
		}
	}
}

// float16 is v as IEEE 754 binary16, rounded toward zero. Magnitudes below the smallest normal number become 0.
func float16(v float32) uint16 {
	bits := math.Float32bits(v)
	sign := uint16(bits >> 16 & 0x8000)
	exponent := int(bits>>23&0xff) - 127 + 15
	switch {
	case exponent <= 0:
		return sign
	case exponent >= 31:
		return sign | 0x7bff // the largest finite number
	}
	return sign | uint16(exponent)<<10 | uint16(bits>>13&0x3ff)
}
