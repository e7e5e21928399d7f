// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// vendor is where this agent asks a model, as the real agents of its name are told.
type vendor struct {
	url, key, model string
	anthropic       bool
}

// vendorOf reads what tells Claude Code or Codex its models.
func vendorOf() (vendor, error) {
	if base := os.Getenv("ANTHROPIC_BASE_URL"); base != "" {
		return vendor{base + "/v1/messages", os.Getenv("ANTHROPIC_AUTH_TOKEN"), os.Getenv("ANTHROPIC_MODEL"), true}, nil
	}
	config, err := os.ReadFile(filepath.Join(os.Getenv("HOME"), ".codex", "config.toml"))
	if err != nil {
		return vendor{}, fmt.Errorf("no model: %w", err)
	}
	value := func(name string) string {
		if m := regexp.MustCompile(`(?m)^` + name + ` = "(.*)"$`).FindSubmatch(config); m != nil {
			return string(m[1])
		}
		return ""
	}
	return vendor{value("base_url") + "/chat/completions", os.Getenv(value("env_key")), value("model"), false}, nil
}

// ask asks the model once, and returns its text, or the status and the message of an error.
func ask(prompt string) string {
	return post(map[string]any{"messages": []any{map[string]any{"role": "user", "content": prompt}}})
}

// post asks the model with members of a body, and returns the answer as ask does; of a stream, as it is.
func post(members map[string]any) string {
	v, err := vendorOf()
	if err != nil {
		return err.Error()
	}
	members["model"], members["max_tokens"] = v.model, 1000
	body, err := json.Marshal(members)
	if err != nil {
		return err.Error()
	}
	r, err := http.NewRequest(http.MethodPost, v.url, bytes.NewReader(body))
	if err != nil {
		return err.Error()
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+v.key)
	if v.anthropic {
		r.Header.Set("Anthropic-Version", "2023-06-01")
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return err.Error()
	}
	var said struct {
		Error   struct{ Message string }
		Content []struct{ Text string }
		Choices []struct{ Message struct{ Content string } }
	}
	if members["stream"] == true && answer.StatusCode == http.StatusOK {
		return string(text)
	}
	if err := json.Unmarshal(text, &said); err != nil {
		return err.Error()
	}
	switch {
	case answer.StatusCode != http.StatusOK:
		return fmt.Sprintf("%d %s", answer.StatusCode, said.Error.Message)
	case len(said.Content) > 0:
		return said.Content[0].Text
	case len(said.Choices) > 0:
		return said.Choices[0].Message.Content
	}
	return strings.TrimSpace(string(text))
}
