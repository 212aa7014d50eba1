package scenario

import (
	"encoding/binary"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"strings"
)

// rgb is a color.
type rgb [3]byte

// drawing is a picture of any size in the making, row by row.
type drawing struct {
	width, height int
	points        []rgb
}

// The colors of the pictures.
var (
	inkWhite = rgb{255, 255, 255}
	inkBlack = rgb{20, 20, 20}
	inkRed   = rgb{200, 40, 40}
	inkGreen = rgb{40, 150, 60}
	inkBlue  = rgb{40, 70, 190}
	inkSand  = rgb{230, 170, 60}
)

func newDrawing(width, height int, ground rgb) *drawing {
	d := &drawing{width, height, make([]rgb, width*height)}
	d.fill(0, 0, width, height, ground)
	return d
}

func (d *drawing) set(x, y int, in rgb) { d.points[y*d.width+x] = in }

func (d *drawing) fill(x, y, width, height int, in rgb) {
	for row := y; row < y+height; row++ {
		for col := x; col < x+width; col++ {
			d.set(col, row, in)
		}
	}
}

// disc fills a circle.
func (d *drawing) disc(x, y, radius int, in rgb) {
	for row := -radius; row <= radius; row++ {
		for col := -radius; col <= radius; col++ {
			if row*row+col*col <= radius*radius {
				d.set(x+col, y+row, in)
			}
		}
	}
}

// triangle fills one that stands on its base.
func (d *drawing) triangle(x, y, size int, in rgb) {
	for row := range size {
		d.fill(x+(size-row)/2, y+row, row+1, 1, in)
	}
}

// write draws capital letters and digits, each three points wide and five high.
func (d *drawing) write(x, y, point int, text string, in rgb) {
	shapes := glyphs()
	for _, letter := range text {
		for i, dot := range shapes[letter] {
			if dot == '#' {
				d.fill(x+i%glyphWide*point, y+i/glyphWide*point, point, point, in)
			}
		}
		x += (glyphWide + 1) * point
	}
}

const glyphWide = 3

// glyphs are the letters and digits, row by row. What is not among them is a blank.
func glyphs() map[rune]string {
	rows := map[rune]string{
		'A': ".#. #.# ### #.# #.#", 'B': "##. #.# ##. #.# ##.", 'C': ".## #.. #.. #.. .##", 'D': "##. #.# #.# #.# ##.", 'E': "### #.. ##. #.. ###",
		'F': "### #.. ##. #.. #..", 'G': ".## #.. #.# #.# .##", 'H': "#.# #.# ### #.# #.#", 'I': "### .#. .#. .#. ###", 'J': "..# ..# ..# #.# .#.",
		'K': "#.# #.# ##. #.# #.#", 'L': "#.. #.. #.. #.. ###", 'M': "#.# ### ### #.# #.#", 'N': "##. #.# #.# #.# #.#", 'O': ".#. #.# #.# #.# .#.",
		'P': "##. #.# ##. #.. #..", 'Q': ".#. #.# #.# ### .##", 'R': "##. #.# ##. ##. #.#", 'S': ".## #.. .#. ..# ##.", 'T': "### .#. .#. .#. .#.",
		'U': "#.# #.# #.# #.# ###", 'V': "#.# #.# #.# .#. .#.", 'W': "#.# #.# ### ### #.#", 'X': "#.# #.# .#. #.# #.#", 'Y': "#.# #.# .#. .#. .#.",
		'Z': "### ..# .#. #.. ###", '0': "### #.# #.# #.# ###", '1': ".#. ##. .#. .#. ###", '2': "##. ..# .#. #.. ###", '3': "##. ..# .#. ..# ##.",
		'4': "#.# #.# ### ..# ..#", '5': "### #.. ##. ..# ##.", '6': ".## #.. ### #.# ###", '7': "### ..# .#. .#. .#.", '8': "### #.# ### #.# ###",
		'9': "### #.# ### ..# ##.",
	}
	for letter, shape := range rows {
		rows[letter] = strings.ReplaceAll(shape, " ", "")
	}
	return rows
}

// png writes the picture in stored blocks, as the other pictures of this package.
func (d *drawing) png() []byte {
	const trueColor = 2
	head := binary.BigEndian.AppendUint32(nil, uint32(d.width))
	head = append(binary.BigEndian.AppendUint32(head, uint32(d.height)), 8, trueColor, 0, 0, 0)
	rows := make([]byte, 0, len(d.points)*len(rgb{})+d.height)
	for i, p := range d.points {
		if i%d.width == 0 {
			rows = append(rows, 0) // the number of the row's filter, which is none
		}
		rows = append(rows, p[:]...)
	}
	out := []byte("\x89PNG\r\n\x1a\n")
	for _, chunk := range []struct {
		name string
		data []byte
	}{{"IHDR", head}, {"IDAT", stored(rows)}, {"IEND", nil}} {
		out = binary.BigEndian.AppendUint32(out, uint32(len(chunk.data)))
		at := len(out)
		out = append(append(out, chunk.name...), chunk.data...)
		out = binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out[at:]))
	}
	return out
}

func drawShapes() *drawing {
	d := newDrawing(384, 256, inkWhite)
	d.disc(80, 90, 56, inkRed)
	d.fill(160, 40, 100, 100, inkBlue)
	d.triangle(284, 40, 88, inkGreen)
	d.write(56, 186, 9, "HELLO 42", inkBlack)
	return d
}

func drawChart() *drawing {
	d := newDrawing(384, 288, inkWhite)
	d.fill(40, 20, 2, 220, inkBlack)
	d.fill(40, 240, 320, 2, inkBlack)
	for i, bar := range []struct {
		name   string
		height int
		in     rgb
	}{{"A", 80, inkBlue}, {"B", 130, inkGreen}, {"C", 200, inkRed}, {"D", 45, inkSand}} {
		x := 64 + 76*i
		d.fill(x, 240-bar.height, 48, bar.height, bar.in)
		d.write(x+15, 252, 6, bar.name, inkBlack)
	}
	return d
}

func drawDocument() *drawing {
	d := newDrawing(320, 416, inkWhite)
	d.write(24, 24, 5, "INVOICE 472", inkBlack)
	d.fill(24, 60, 272, 2, inkBlack)
	for i, line := range []string{"PAPER      12", "INK        31", "STAMPS      9", "STRING      4", "BOXES      18"} {
		d.write(24, 84+36*i, 4, line, inkBlack)
	}
	d.fill(24, 270, 272, 2, inkBlack)
	d.write(24, 290, 5, "TOTAL    74", inkBlack)
	for row := range 4 { // lines too small to be read
		d.fill(24, 340+14*row, 272-40*(row%2), 3, rgb{150, 150, 150})
	}
	return d
}

// drawPhoto is a landscape with soft edges and grain: what compression and resizing treat unlike drawings.
func drawPhoto() *drawing {
	const width, height = 320, 240
	d := newDrawing(width, height, inkWhite)
	grain := rand.New(rand.NewPCG(7, 11))
	for y := range height {
		for x := range width {
			d.set(x, y, landscape(float64(x)/width, float64(y)/height, grain.IntN(13)-6))
		}
	}
	return d
}

// landscape is the color of a point, from 0 to 1 each way, with so much grain.
func landscape(x, y float64, grain int) rgb {
	hills := 0.62 + 0.08*triangular(1.5*x+0.2) + 0.03*triangular(4*x)
	sun := (x-0.75)*(x-0.75) + (y-0.22)*(y-0.22)
	mix := func(from, to, share float64) uint8 {
		return uint8(max(0, min(255, int(math.Round(from+(to-from)*share))+grain)))
	}
	switch {
	case y > hills:
		depth := (y - hills) / (1 - hills)
		return rgb{mix(90, 30, depth), mix(140, 60, depth), mix(70, 30, depth)}
	case sun < 0.006:
		return rgb{mix(255, 250, y), mix(235, 220, y), mix(170, 150, y)}
	}
	return rgb{mix(90, 240, y), mix(150, 200, y), mix(220, 180, y)}
}

// triangular is a wave between -1 and 1 of straight lines: sines differ between machines in their last digits.
func triangular(x float64) float64 {
	x -= math.Floor(x)
	return 1 - 4*math.Abs(x-0.5)
}

func drawTall() *drawing {
	d := newDrawing(112, 784, inkWhite)
	for i, letter := range []string{"K", "7", "M", "2", "R"} {
		d.fill(0, 156*i, 112, 156, []rgb{inkSand, inkWhite, inkGreen, inkWhite, inkRed}[i])
		d.write(38, 156*i+48, 12, letter, inkBlack)
	}
	return d
}

func drawWide() *drawing {
	d := newDrawing(896, 112, rgb{235, 240, 250})
	for i, letter := range []string{"Q", "4", "T", "9", "W", "H"} {
		d.write(56+142*i, 30, 11, letter, inkBlue)
		d.disc(120+142*i, 58, 10, inkRed)
	}
	return d
}
