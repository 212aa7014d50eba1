package scenario

import (
	"bytes"
	"encoding/binary"
	"hash/adler32"
	"hash/crc32"
)

// The pictures and sounds of this package are drawn with whole numbers and written without compression: neither a
// processor's rounding nor a later compressor changes a byte of them.

// The size of pictures, in pixels.
const (
	pictureWidth  = 256
	pictureHeight = 192
	bandHeight    = 8 // of the squares at the lower edge, which tell pictures apart
)

// colors are the palette of pictures; those from gray0 on are the grays of the band.
var colors = [...][3]byte{{255, 255, 255}, {214, 39, 40}, {31, 90, 200}, {34, 139, 34}, {40, 40, 40}, {100, 100, 100}, {160, 160, 160}, {210, 210, 210}}

const (
	paintRed   = 1
	paintBlue  = 2
	paintGreen = 3
	gray0      = 4
)

// bitmap is a picture, a byte of the palette for each pixel, row by row.
type bitmap [pictureWidth * pictureHeight]byte

// fill paints the pixels that are inside.
func (c *bitmap) fill(color byte, inside func(x, y int) bool) {
	for i := range c {
		if inside(i%pictureWidth, i/pictureWidth) {
			c[i] = color
		}
	}
}

func discAt(cx, cy, r int) func(x, y int) bool {
	return func(x, y int) bool { return (x-cx)*(x-cx)+(y-cy)*(y-cy) <= r*r }
}

// band paints the squares that tell pictures apart.
func (c *bitmap) band(seed uint64) {
	p := newProse(seed)
	for at := 0; at < pictureWidth; at += bandHeight {
		color := gray0 + byte(p.next()%uint64(len(colors)-gray0))
		c.fill(color, func(x, y int) bool { return y >= pictureHeight-bandHeight && x >= at && x < at+bandHeight })
	}
}

// shapesPicture is a red disc, a blue square and a green triangle, from left to right.
func shapesPicture(seed uint64) []byte {
	var c bitmap
	c.fill(paintRed, discAt(56, 96, 36))
	c.fill(paintBlue, func(x, y int) bool { return x >= 104 && x < 160 && y >= 68 && y < 124 })
	c.fill(paintGreen, func(x, y int) bool { return y >= 60 && y < 128 && 2*abs(x-208) <= y-60 })
	c.band(seed)
	return c.png()
}

func abs(n int) int { return max(n, -n) }

// movingPictures are a red disc on its way from left to right.
func movingPictures(seed uint64) [][]byte {
	out := make([][]byte, videoFrames)
	for i := range out {
		var c bitmap
		c.fill(paintRed, discAt(40+i*176/(videoFrames-1), 96, 28))
		c.band(seed + uint64(i))
		out[i] = c.png()
	}
	return out
}

// png writes the picture as a PNG of eight bits with a palette, in stored blocks.
func (c *bitmap) png() []byte {
	var rows bytes.Buffer // each row behind the number of its filter, which is none
	for y := range pictureHeight {
		rows.WriteByte(0)
		rows.Write(c[y*pictureWidth : (y+1)*pictureWidth])
	}
	var palette []byte
	for _, rgb := range colors {
		palette = append(palette, rgb[:]...)
	}
	head := binary.BigEndian.AppendUint32(nil, pictureWidth)
	head = binary.BigEndian.AppendUint32(head, pictureHeight)
	head = append(head, 8, 3, 0, 0, 0)
	out := []byte("\x89PNG\r\n\x1a\n")
	for _, chunk := range []struct {
		name string
		data []byte
	}{{"IHDR", head}, {"PLTE", palette}, {"IDAT", stored(rows.Bytes())}, {"IEND", nil}} {
		out = binary.BigEndian.AppendUint32(out, uint32(len(chunk.data)))
		at := len(out)
		out = append(append(out, chunk.name...), chunk.data...)
		out = binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out[at:]))
	}
	return out
}

// stored is data as a zlib stream that compresses nothing.
func stored(data []byte) []byte {
	out := []byte{0x78, 0x01}
	for rest := data; ; {
		n := min(len(rest), 0xffff)
		last := byte(0)
		if n == len(rest) {
			last = 1
		}
		out = append(out, last)
		out = binary.LittleEndian.AppendUint16(out, uint16(n))
		out = binary.LittleEndian.AppendUint16(out, ^uint16(n))
		out = append(out, rest[:n]...)
		if rest = rest[n:]; last == 1 {
			return binary.BigEndian.AppendUint32(out, adler32.Checksum(data))
		}
	}
}

// The form of sounds.
const (
	sampleRate  = 16000 // a second
	toneSamples = sampleRate * 6 / 10
	gapSamples  = sampleRate * 2 / 10
	loudness    = 9000 // of 32,767
)

// tones are how high the tones are, in Hz.
var tones = [...]int{440, 554, 659}

// tonesSound is three tones, each higher than the one before, as a WAV of one channel. What tells sounds apart is a noise
// in the gaps between them that is too faint to be heard.
func tonesSound(seed uint64) []byte {
	p := newProse(seed)
	var samples []byte
	for _, hz := range tones {
		for range gapSamples {
			samples = binary.LittleEndian.AppendUint16(samples, uint16(int16(p.next()%9)-4))
		}
		for i := range toneSamples {
			samples = binary.LittleEndian.AppendUint16(samples, uint16(toneAt(i*hz%sampleRate)))
		}
	}
	out := append([]byte("RIFF"), binary.LittleEndian.AppendUint32(nil, uint32(36+len(samples)))...)
	out = append(out, "WAVEfmt "...)
	out = binary.LittleEndian.AppendUint32(out, 16)
	for _, v := range []uint16{1, 1} { // PCM, one channel
		out = binary.LittleEndian.AppendUint16(out, v)
	}
	out = binary.LittleEndian.AppendUint32(out, sampleRate)
	out = binary.LittleEndian.AppendUint32(out, 2*sampleRate)
	out = binary.LittleEndian.AppendUint16(out, 2)
	out = binary.LittleEndian.AppendUint16(out, 16)
	out = append(out, "data"...)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(samples)))
	return append(out, samples...)
}

// toneAt is a triangle wave at a part of its period, in samples of a period of sampleRate.
func toneAt(phase int) int16 {
	return int16(loudness - 4*loudness*abs(phase-sampleRate/2)/sampleRate)
}
