// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"

	"github.com/platform-ai/platform/pkg/llm"
)

// null reports whether a member is missing or null.
func null(raw json.RawMessage) bool { return len(raw) == 0 || bytes.Equal(raw, []byte("null")) }

// put makes content that of a message: the texts, each on lines of its own, and images with them if there are some.
func put(m *llm.Message, said []llm.Content) {
	var texts []string
	for _, c := range said {
		if c.Image == nil {
			texts = append(texts, c.Text)
		}
	}
	if m.Text = strings.Join(texts, "\n"); len(texts) < len(said) {
		m.Content = said
	}
}

// silent reports whether a message, other than a result, says nothing. A message whose content is empty, be it null, an empty text or
// an empty list, is carried as an empty one, whoever wrote it and in every API: without it the turns before and after it would become
// one, and a conversation that has one would end if it were refused. Where the protocol has no empty messages, a notice says so.
func silent(m *llm.Message) bool {
	return m.Role != llm.RoleTool && strings.TrimSpace(m.Text) == "" && len(m.ToolCalls) == 0 && len(m.Content) == 0
}

// trim leaves out a message at the end with which the assistant begins its answer and says nothing.
func (t *translated) trim() {
	if last := t.last(); last.Role == llm.RoleAssistant && last.Text == "" && silent(last) {
		t.Messages = t.Messages[:len(t.Messages)-1]
	}
}

// content reads a text, or parts of which each is read by a func.
func content(raw json.RawMessage, param string, part func(json.RawMessage) (llm.Content, error)) ([]llm.Content, error) {
	var text string
	var parts []json.RawMessage
	switch {
	case null(raw):
		return nil, nil
	case json.Unmarshal(raw, &text) == nil:
		return []llm.Content{{Text: text}}, nil
	case json.Unmarshal(raw, &parts) != nil:
		return nil, untranslatable(param, "content that is neither a text nor a list of parts")
	}
	var all []llm.Content
	for _, p := range parts {
		if null(p) {
			return nil, untranslatable(param, "a part that is null")
		}
		c, err := part(p)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// readChat reads the content of a message of a chat completion.
func readChat(raw json.RawMessage) ([]llm.Content, error) {
	return content(raw, "messages", func(raw json.RawMessage) (llm.Content, error) {
		var p struct {
			Type     string `json:"type"`
			Text     string `json:"text"`
			Refusal  string `json:"refusal"`
			ImageURL struct {
				URL string `json:"url"`
			} `json:"image_url"`
		}
		if err := strict(raw, &p); err != nil {
			return llm.Content{}, untranslatable("messages", "content of this form")
		}
		if p.Type == "image_url" {
			return pictured("messages", p.ImageURL.URL)
		}
		return llm.Content{Text: p.Text + p.Refusal}, nil
	})
}

// readInput reads the content of an item of a response.
func readInput(raw json.RawMessage) ([]llm.Content, error) {
	return content(raw, "input", func(raw json.RawMessage) (llm.Content, error) {
		var p struct {
			Type     string `json:"type"`
			Text     string `json:"text"`
			Refusal  string `json:"refusal"`
			ImageURL string `json:"image_url"`
		}
		if err := strict(raw, &p); err != nil {
			return llm.Content{}, untranslatable("input", "content of this form")
		}
		if p.Type == "input_image" {
			return pictured("input", p.ImageURL)
		}
		return llm.Content{Text: p.Text + p.Refusal}, nil
	})
}

// readBlocks reads blocks of a message that are texts and images.
func readBlocks(raw json.RawMessage, param string) ([]llm.Content, error) {
	return content(raw, param, func(raw json.RawMessage) (llm.Content, error) {
		if kindOf(raw) == "image" {
			var b imageBlock
			if err := strict(raw, &b); err != nil {
				return llm.Content{}, err
			}
			return b.image()
		}
		var b textBlock
		err := strict(raw, &b)
		return llm.Content{Text: b.Text}, err
	})
}

// inline matches the address of an image that contains it.
var inline = regexp.MustCompile(`^data:([a-z]+/[a-zA-Z0-9.+-]+);base64,([A-Za-z0-9+/_-]+=*)$`)

// pictured returns the image at an address.
func pictured(param, url string) (llm.Content, error) {
	switch found := inline.FindStringSubmatch(url); {
	case found != nil:
		return llm.Content{Image: &llm.Image{MediaType: found[1], Data: found[2]}}, nil
	case strings.HasPrefix(url, "https://"), strings.HasPrefix(url, "http://"):
		return llm.Content{Image: &llm.Image{URL: url}}, nil
	}
	return llm.Content{}, untranslatable(param, "an image whose address is neither http, https nor data in base64")
}
