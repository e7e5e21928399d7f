// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"slices"

	"github.com/platform-ai/platform/pkg/llm"
)

// minTokens is the smallest limit of the output that the chat completions API accepts here.
const minTokens = 16

// incoming is the body of a request.
type incoming struct {
	*object

	op     operation
	model  string // as the client names it
	stream bool
	// usage is set if the client of a chat completion asked for a report of its usage in the stream.
	usage bool
}

// read checks a body as far as this server must understand it. All other members are the vendor's.
func read(op operation, data []byte) (*incoming, error) {
	o, err := parse(data)
	if err != nil {
		return nil, invalid("", "%v", err)
	}
	in := &incoming{object: o, op: op}
	if err := o.decode("model", &in.model); err != nil {
		return nil, err
	}
	if err := o.decode("stream", &in.stream); err != nil {
		return nil, err
	}
	switch op {
	case opChat:
		return in, in.checkChat()
	case opResponses:
		return in, cmp.Or(in.checkResponses(), in.checkContainers())
	default:
		return in, cmp.Or(in.checkThread(), in.checkMessages(), in.checkContainers())
	}
}

// decode reads a member into a value of its type. The value stays as it is if there is no such member.
func (o *object) decode(name string, into any) error {
	raw := o.get(name)
	if raw == nil || simple(raw, into) {
		return nil
	}
	if json.Unmarshal(raw, into) != nil {
		return invalid(name, "%s: has the wrong type", name)
	}
	return nil
}

func (in *incoming) checkChat() error {
	var n, tokens, completion *int64
	var options struct {
		IncludeUsage bool `json:"include_usage"`
	}
	err := errors.Join(in.decode("n", &n), in.decode("max_tokens", &tokens), in.decode("max_completion_tokens", &completion), in.decode("stream_options", &options))
	if err != nil {
		return err
	}
	in.usage = options.IncludeUsage
	if completion != nil {
		tokens = completion
	}
	switch {
	case n != nil && *n > 1:
		return invalid("n", "n: must be 1, because this server gives one answer")
	case tokens != nil && *tokens < minTokens:
		return invalid("max_tokens", "max_tokens: must be at least %d", minTokens)
	}
	return in.checkList("messages")
}

func (in *incoming) checkResponses() error {
	store, background := false, false // the vendor's default is to store, which several SDKs leave it to
	if err := in.decode("store", &store); err != nil {
		return err
	}
	if err := in.decode("background", &background); err != nil {
		return err
	}
	switch {
	case store:
		return invalid("store", "store: must be false, because this server keeps no responses")
	case background:
		return invalid("background", "background: must be false, because this server keeps no responses")
	case in.get("input") == nil:
		return invalid("input", "input: is required")
	case refers(in.get("input")):
		return invalid("input", `input: an item_reference names an item that a server has stored, and this one stores none; send the items themselves, which clients do with "store": false`)
	}
	for _, name := range []string{"previous_response_id", "conversation"} {
		if in.get(name) != nil {
			return invalid(name, "%s: cannot be used, because this server keeps no responses; send the conversation in input", name)
		}
	}
	return nil
}

// refers reports whether one of the items of a response stands for an item that was stored. The type may be left out.
func refers(input json.RawMessage) bool {
	var items []fields
	if !bytes.Contains(input, []byte(`"id"`)) || json.Unmarshal(input, &items) != nil {
		return false
	}
	return slices.ContainsFunc(items, func(item fields) bool {
		var kind string
		_ = json.Unmarshal(item["type"], &kind) // another type is refused later
		return kind == "item_reference" || null(item["type"]) && !null(item["id"]) && null(item["role"])
	})
}

func (in *incoming) checkMessages() error {
	if in.model == "" {
		return invalid("model", "model: is required")
	}
	if in.op == opMessages {
		var tokens int64
		if err := in.decode("max_tokens", &tokens); err != nil {
			return err
		}
		if tokens <= 0 {
			return invalid("max_tokens", "max_tokens: is required and must be greater than 0")
		}
	}
	return in.checkList("messages")
}

func (in *incoming) checkList(name string) error {
	raw := in.get(name)
	if raw != nil && raw[0] != '[' {
		return invalid(name, "%s: has the wrong type", name)
	}
	if raw == nil || len(bytes.TrimSpace(raw[1:len(raw)-1])) == 0 {
		return invalid(name, "%s: must have at least one element", name)
	}
	return nil
}

// changes are what this server changes in a request, besides the name of the model.
type changes struct {
	// usage asks for the usage in a stream of a chat completion whose client did not ask for it; see reporter.
	usage bool
	// whole asks for an answer that is not a stream.
	whole bool
}

// forModel returns the body for a model of a Provider of the same protocol. The request is not decoded and encoded again: the bytes
// of the members that change are replaced, and everything else, known or not, stays as the client wrote it. Three members change:
// model; store, if it is left to the vendor's default; and stream_options, if the client of a stream did not ask for its usage. A
// server that refuses stream_options is asked once more without it (relent), and not again for it; its usage is then a gap.
func (in *incoming) forModel(model string, c changes) ([]byte, error) {
	o := &object{data: in.data, members: in.members, open: in.open}
	if model != in.model {
		if err := o.set("model", model); err != nil {
			return nil, err
		}
	}
	if in.op == opResponses && in.get("store") == nil {
		if err := o.set("store", false); err != nil {
			return nil, err
		}
	}
	if c.whole {
		o.remove("stream_options")
		if err := o.set("stream", false); err != nil {
			return nil, err
		}
	} else if c.usage && in.hidesUsage() {
		options := map[string]json.RawMessage{}
		if raw := in.get("stream_options"); raw != nil {
			if err := json.Unmarshal(raw, &options); err != nil {
				return nil, invalid("stream_options", "stream_options: must be an object")
			}
		}
		options["include_usage"] = json.RawMessage("true")
		if err := o.set("stream_options", options); err != nil {
			return nil, err
		}
	}
	return o.bytes(), nil
}

// hidesUsage reports whether the answer is a stream whose client does not expect usage.
func (in *incoming) hidesUsage() bool { return in.op == opChat && in.stream && !in.usage }

// protocolOf returns the protocol that an operation belongs to.
func protocolOf(op operation) llm.Protocol {
	if op == opMessages || op == opCount {
		return llm.ProtocolAnthropic
	}
	return llm.ProtocolOpenAI
}
