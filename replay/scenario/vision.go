package scenario

import (
	"fmt"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// Image is a picture that a request can show.
type Image struct {
	Name  string // in the ids of cases: letters, digits and underscores
	Bytes []byte // of the file: PNG, JPEG, GIF or WebP
	Ask   string // what is asked about it; "" asks for a description
}

const describeImage = "Describe this picture in two sentences."

// imaged are the pictures of a level, and those of the user.
func imaged(o LevelOptions) (out []Scenario) {
	images := Images()
	if o.Level == "dev" {
		images = images[:devImages]
	}
	for _, m := range append(images, o.Images...) {
		out = append(out, Vision(m))
	}
	return out
}

// Vision asks about a picture. Its answer is compared token by token, and so is the number of tokens of its prompt, in
// which every difference of resizing and of markers shows.
func Vision(m Image) Scenario {
	ask := m.Ask
	if ask == "" {
		ask = describeImage
	}
	s := compared("vision_"+m.Name, fmt.Sprintf("a question about the picture %s, compared token by token", m.Name), func() string { return ask })
	s.Modality = ModalityImage
	s.first = func(Options) chat {
		return chat{Messages: []message{{Role: "user", Content: []contentPart{text(ask), picture(m.Bytes)}}}, Logprobs: true, TopLogprobs: levelTop}
	}
	s.checks = []exchange.Check{{Gate: "vision"}}
	return s
}

// Images are the built-in pictures. They are drawn here, so that they belong to nobody, and are the same bytes on every
// machine: shapes with text, a chart, a document, something like a photo, one that is tall and one that is wide.
func Images() []Image {
	drawn := func(name, ask string, d *drawing) Image { return Image{Name: name, Bytes: d.png(), Ask: ask} }
	return []Image{
		drawn("shapes", "Which shapes and which words does the picture show?", drawShapes()),
		drawn("document", "Which number stands behind the word TOTAL?", drawDocument()),
		drawn("chart", "Which bar of the chart is the highest?", drawChart()),
		drawn("photo", "", drawPhoto()),
		drawn("tall", "Which letters does the picture show, from top to bottom?", drawTall()),
		drawn("wide", "Which letters does the picture show, from left to right?", drawWide()),
	}
}

// Check says whether the picture can be sent. The error wraps ErrMaterial.
func (m Image) Check() error {
	switch {
	case kindOf(m.Bytes).modality != ModalityImage:
		return fmt.Errorf("%w: %s is neither PNG, JPEG, GIF nor WebP", ErrMaterial, m.Name)
	case m.Name == "":
		return fmt.Errorf("%w: a picture has no name", ErrMaterial)
	}
	return nil
}
