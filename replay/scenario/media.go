package scenario

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
)

// What a model must take besides text.
const (
	ModalityImage = "image"
	ModalityAudio = "audio"
	ModalityVideo = "video"
)

// ErrMaterial says that an image, a sound or a video of the user's cannot be put into a request.
var ErrMaterial = errors.New("it cannot be sent")

// mostFrames is how many pictures of a video are sent at most.
const mostFrames = 64

// videoFrames is how many pictures our own video has, and into how many another one should be taken apart.
const videoFrames = 4

const (
	imageAsk = "Describe the picture in three sentences: which shapes are in it, which color each of them has, and how they stand to each other."
	audioAsk = "Describe in three sentences what can be heard: how many sounds there are, how they follow each other, and whether they rise or fall."
	videoAsk = "These pictures were taken from a video, one after the other. Describe in three sentences what is in them, and in which direction it moves."
	ownAsk   = " Describe in three sentences what is in it."
)

// mediaScenarios are those of pictures, sounds and videos. Text stands first, so that nonce and tag do.
func mediaScenarios(m Materials) []Scenario {
	image := mediaScenario("image", "a description of a picture", ModalityImage, func(o Options) []contentPart {
		if m.Image != nil {
			return []contentPart{text("Here is a picture." + ownAsk), picture(m.Image)}
		}
		return []contentPart{text(imageAsk), picture(shapesPicture(seedOf(o)))}
	})
	audio := mediaScenario("audio", "a description of a sound", ModalityAudio, func(o Options) []contentPart {
		if m.Audio != nil {
			return []contentPart{text("Here is a recording." + ownAsk), sound(m.Audio)}
		}
		return []contentPart{text(audioAsk), sound(tonesSound(seedOf(o)))}
	})
	video := mediaScenario("video", "a description of a video, sent as pictures of it", ModalityVideo, func(o Options) []contentPart {
		frames := m.Frames
		if frames == nil {
			frames = movingPictures(seedOf(o))
		}
		parts := []contentPart{text(videoAsk)}
		for _, f := range frames {
			parts = append(parts, picture(f))
		}
		return parts
	})
	if m.Image == nil { // what ours show is known
		image.checks = append(image.checks, check("needle", `{"expect":["red"]}`))
	}
	return []Scenario{image, audio, video}
}

func mediaScenario(id, summary, modality string, parts func(Options) []contentPart) Scenario {
	s := measured(id, summary, func(o Options) []message { return []message{{Role: "user", Content: parts(o)}} })
	s.Modality = modality
	return s
}

// seedOf makes our pictures and sounds differ with the nonce and the tag, in a part that nobody asks about: engines keep
// what they made of a picture by its bytes, as they keep the beginning of a prompt.
func seedOf(o Options) uint64 { return proseSeed(o.Nonce + "\n" + o.Tag) }

func text(s string) contentPart { return contentPart{Type: "text", Text: s} }

func picture(b []byte) contentPart {
	return contentPart{Type: "image_url", ImageURL: object(map[string]string{"url": "data:" + kindOf(b).mime + ";base64," + base64.StdEncoding.EncodeToString(b)})}
}

func sound(b []byte) contentPart {
	return contentPart{Type: "input_audio", InputAudio: object(map[string]string{"data": base64.StdEncoding.EncodeToString(b), "format": kindOf(b).format})}
}

// object is a flat object as JSON, its keys sorted.
func object(fields map[string]string) json.RawMessage {
	b, err := json.Marshal(fields)
	if err != nil {
		panic("scenario: texts are always JSON")
	}
	return b
}

// kind is a kind of file that can be part of a request.
type kind struct {
	mime     string
	format   string // of sounds, as requests name it; "" for pictures
	at       int    // where the mark stands
	mark     string
	modality string
}

// kinds are those that engines take.
var kinds = [...]kind{
	{mime: "image/png", mark: "\x89PNG\r\n\x1a\n", modality: ModalityImage},
	{mime: "image/jpeg", mark: "\xff\xd8\xff", modality: ModalityImage},
	{mime: "image/gif", mark: "GIF8", modality: ModalityImage},
	{mime: "image/webp", at: 8, mark: "WEBP", modality: ModalityImage},
	{mime: "audio/wav", format: "wav", at: 8, mark: "WAVE", modality: ModalityAudio},
	{mime: "audio/mpeg", format: "mp3", mark: "ID3", modality: ModalityAudio},
	{mime: "audio/mpeg", format: "mp3", mark: "\xff\xfb", modality: ModalityAudio},
	{mime: "audio/mpeg", format: "mp3", mark: "\xff\xf3", modality: ModalityAudio},
	{mime: "audio/mpeg", format: "mp3", mark: "\xff\xf2", modality: ModalityAudio},
	{mime: "audio/flac", format: "flac", mark: "fLaC", modality: ModalityAudio},
	{mime: "audio/ogg", format: "ogg", mark: "OggS", modality: ModalityAudio},
}

// kindOf is the kind of a file by its first bytes; the zero kind for one that is none of them.
func kindOf(b []byte) kind {
	for _, k := range kinds {
		if len(b) >= k.at && bytes.HasPrefix(b[k.at:], []byte(k.mark)) {
			return k
		}
	}
	return kind{}
}

// usable says whether what the user put in the place of our media can be sent. The error wraps ErrMaterial.
func (s Scenario) usable(m Materials) error {
	bad := func(what, why string) error {
		return fmt.Errorf("scenario %s: %s: %w: %s", s.ID, what, ErrMaterial, why)
	}
	switch {
	case s.Modality != "" && m.Broken[s.Modality] != nil:
		return fmt.Errorf("scenario %s: %w: %w", s.ID, ErrMaterial, m.Broken[s.Modality])
	case s.Modality == ModalityImage && m.Image != nil && kindOf(m.Image).modality != ModalityImage:
		return bad("the image", "it is no PNG, JPEG, GIF or WebP")
	case s.Modality == ModalityAudio && m.Audio != nil && kindOf(m.Audio).modality != ModalityAudio:
		return bad("the audio", "it is no WAV, MP3, FLAC or Ogg")
	case s.Modality != ModalityVideo || m.Frames == nil:
		return nil
	case len(m.Frames) == 0 || len(m.Frames) > mostFrames:
		return bad("the video", fmt.Sprintf("it has %d frames, and 1 to %d can be sent", len(m.Frames), mostFrames))
	}
	for i, f := range m.Frames {
		if kindOf(f).modality != ModalityImage {
			return bad("the video", fmt.Sprintf("frame %d is no PNG, JPEG, GIF or WebP", i+1))
		}
	}
	return nil
}

// VideoFrames is into how many pictures a video is to be taken apart for Materials.Frames.
func VideoFrames() int { return videoFrames }
