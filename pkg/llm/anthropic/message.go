// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"encoding/json"
	"errors"
	"io"

	"github.com/platform-ai/platform/pkg/llm/wire"
	"github.com/platform-ai/platform/pkg/sse"
)

// request is what is sent: the members of the protocol that this package uses.
type request struct {
	MaxTokens     int64         `json:"max_tokens"`
	Messages      []message     `json:"messages,omitempty"`
	Model         string        `json:"model,omitempty"`
	Temperature   *float64      `json:"temperature,omitempty"`
	TopP          *float64      `json:"top_p,omitempty"`
	OutputConfig  *outputConfig `json:"output_config,omitempty"`
	StopSequences []string      `json:"stop_sequences,omitempty"`
	System        []*sentText   `json:"system,omitempty"`
	ToolChoice    *toolChoice   `json:"tool_choice,omitempty"`
	Tools         []*sentTool   `json:"tools,omitempty"`
	Stream        bool          `json:"stream"`
}

type outputConfig struct {
	Effort string        `json:"effort,omitempty"`
	Format *outputFormat `json:"format,omitempty"`
}

type outputFormat struct {
	Type   string          `json:"type"`
	Schema json.RawMessage `json:"schema"`
}

type toolChoice struct {
	Name   string `json:"name,omitempty"`
	Single bool   `json:"disable_parallel_tool_use,omitempty"`
	Type   string `json:"type"`
}

// message is what one side said.
type message struct {
	Content []sent `json:"content"`
	Role    string `json:"role"`
}

// The two sides of a conversation.
const (
	roleUser      = "user"
	roleAssistant = "assistant"
)

// sent is a content block of a message.
type sent interface {
	// mark has the server cache what comes before the end of the block.
	mark()
}

// cached is what all parts of a request have that a mark can be set on.
type cached struct {
	CacheControl *cacheControl `json:"cache_control,omitempty"`
}

type cacheControl struct {
	Type string `json:"type"`
}

func (c *cached) mark() { c.CacheControl = &cacheControl{"ephemeral"} }

type (
	sentText struct {
		Text string `json:"text"`
		cached
		Type string `json:"type"`
	}
	sentImage struct {
		Source imageSource `json:"source"`
		cached
		Type string `json:"type"`
	}
	imageSource struct {
		Data      string `json:"data,omitempty"`
		MediaType string `json:"media_type,omitempty"`
		URL       string `json:"url,omitempty"`
		Type      string `json:"type"`
	}
	sentCall struct {
		ID    string          `json:"id"`
		Input json.RawMessage `json:"input"`
		Name  string          `json:"name"`
		cached
		Type string `json:"type"`
	}
	sentResult struct {
		ToolUseID string `json:"tool_use_id"`
		IsError   bool   `json:"is_error,omitempty"`
		cached
		Content []sent `json:"content,omitempty"`
		Type    string `json:"type"`
	}
	sentTool struct {
		InputSchema json.RawMessage `json:"input_schema"`
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Strict      bool            `json:"strict,omitempty"`
		cached
	}
	// verbatim is a block that goes back as the vendor wrote it, without a mark.
	verbatim struct{ json.RawMessage }
)

func (verbatim) mark() {}

func newText(text string) *sentText { return &sentText{Text: text, Type: blockText} }

// event is an event of a stream: all members of all types that this package reads.
type event struct {
	Type    string `json:"type"`
	Index   int64  `json:"index"`
	Message struct {
		ID    string `json:"id"`
		Model string `json:"model"`
		Usage tokens `json:"usage"`
	} `json:"message"`
	ContentBlock struct {
		Type      string            `json:"type"`
		ID        string            `json:"id"`
		Name      string            `json:"name"`
		Text      string            `json:"text"`
		Thinking  string            `json:"thinking"`
		Signature string            `json:"signature"`
		Data      string            `json:"data"`
		Input     json.RawMessage   `json:"input"`
		Citations []json.RawMessage `json:"citations"`
	} `json:"content_block"`
	Delta struct {
		Type        string `json:"type"`
		Text        string `json:"text"`
		PartialJSON string `json:"partial_json"`
		Thinking    string `json:"thinking"`
		Signature   string `json:"signature"`
		StopReason  string `json:"stop_reason"`
	} `json:"delta"`
	Usage tokens `json:"usage"`
}

// tokens are the figures of a usage.
type tokens struct {
	Input  figure `json:"input_tokens"`
	Output figure `json:"output_tokens"`
	Read   figure `json:"cache_read_input_tokens"`
	Write  figure `json:"cache_creation_input_tokens"`
}

// figure is a number of tokens; nil if it is not reported. A negative one counts as not reported.
type figure struct{ n *int64 }

// UnmarshalJSON reads a number, which some servers write with a fraction.
func (f *figure) UnmarshalJSON(raw []byte) error {
	var n *float64
	if json.Unmarshal(raw, &n) == nil && n != nil && *n >= 0 {
		whole := int64(*n)
		f.n = &whole
	}
	return nil
}

// decode reads an event. A member of another type than the protocol's counts as absent.
func decode(data []byte) (event, error) {
	var e event
	err := json.Unmarshal(data, &e)
	if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && kind.Field != "" {
		err = nil
	}
	return e, err
}

// maxEvent bounds a line of a stream and the data of an event, in bytes. Only a server that sends its whole answer in one event
// has longer ones than a token's.
const maxEvent = 4 * wire.MaxAnswer

// events reads the events of a stream.
type events struct{ in *sse.Reader }

func newEvents(body io.Reader) events {
	return events{sse.NewReader(body, sse.Options{MaxLine: maxEvent, MaxData: maxEvent})}
}

// next returns the next event that says something. The error is io.EOF at the end, and an *inBandError if the server reports one.
func (s events) next() (event, error) {
	for {
		e, err := s.in.Next()
		switch {
		case err != nil:
			return event{}, err
		case e.Type == "error":
			return event{}, &inBandError{e.Data}
		case e.Type == "ping", e.Type == "message", e.Data == "": // the protocol names all events; "message" is one without a name
		default:
			return decode([]byte(e.Data))
		}
	}
}

// inBandError is an error that the server reports inside a stream.
type inBandError struct{ data string }

// Error says nothing of the data, which may have secrets.
func (*inBandError) Error() string { return "the server reported an error in the stream" }
