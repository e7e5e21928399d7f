// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package llm

// Content is a piece of what is said: a text, or an image.
type Content struct {
	Text  string
	Image *Image
}

// Image is an image that a model is shown.
type Image struct {
	// MediaType and Data, in base64, are the image itself. Without them the vendor reads it from URL.
	MediaType, Data, URL string
}

// Images returns the images of a message.
func (m *Message) Images() (all []Content) {
	for _, c := range m.Content {
		if c.Image != nil {
			all = append(all, c)
		}
	}
	return all
}

// ChoiceMode says whether a model may, must or must not call tools.
type ChoiceMode string

// Modes of a choice. The empty one leaves it to the model.
const (
	ChoiceNone     ChoiceMode = "none"
	ChoiceRequired ChoiceMode = "required"
	ChoiceNamed    ChoiceMode = "named"
)

// ToolChoice says which tools an answer may call.
type ToolChoice struct {
	Mode ChoiceMode
	// Name is the tool that must be called, with ChoiceNamed.
	Name string
	// Single allows one call in an answer at most.
	Single bool
}

// How much a model thinks before it answers, as vendors name it. Each vendor's package takes the nearest one that all of the
// vendor's models which know effort take.
const (
	effortNone, effortMinimal, effortLow, effortMedium = "none", "minimal", "low", "medium"
	effortHigh, effortXHigh, effortMax                 = "high", "xhigh", "max"
)

// Effort returns low, medium or high for what a vendor calls an effort; empty for what none does.
func Effort(name string) string {
	switch name {
	case effortNone, effortMinimal, effortLow:
		return effortLow
	case effortMedium:
		return effortMedium
	case effortHigh, effortXHigh, effortMax:
		return effortHigh
	}
	return ""
}
