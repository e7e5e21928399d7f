// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"encoding/json"
	"net/url"
	"strings"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/tool"
)

// Tools that work on programs and files of a run, and on the web.
var (
	// CodeExec describes the tool with all languages and without a network. ForLanguages is its definition for a run.
	CodeExec = &Tool{
		Name:        "code_exec",
		Description: codeDescription(Languages()) + NoNetwork,
		Schema:      func() json.RawMessage { return codeSchema(Languages()) },
		In:          Runs, Effects: Reads | Writes | Executes,
		Typed: typed(func(s *v1alpha1.ToolCallSpec, a struct {
			Language string `json:"language"`
			Code     string `json:"code"`
			Timeout  int64  `json:"timeout"`
		},
		) {
			s.CodeExec = &v1alpha1.CodeExecArguments{Language: a.Language, Code: a.Code, TimeoutSeconds: a.Timeout}
		}),
	}
	FileRead = &Tool{
		Name:        "file_read",
		Description: "Read a text file from the working folder or the temporary folder.",
		Schema:      schema[ReadArguments],
		In:          Runs, Effects: Reads,
		Typed: typed(func(s *v1alpha1.ToolCallSpec, a struct {
			Path   string `json:"path"`
			Offset int64  `json:"offset"`
			Limit  int64  `json:"limit"`
		},
		) {
			s.FileRead = &v1alpha1.FileReadArguments{Path: a.Path, Offset: a.Offset, Limit: a.Limit}
		}),
	}
	// FileWrite describes the tool for a run whose files are not kept.
	FileWrite = &Tool{
		Name:        "file_write",
		Description: "Write a text file in the working folder or the temporary folder.",
		Schema:      schema[WriteArguments],
		In:          Runs, Effects: Writes,
		Typed: typed(func(s *v1alpha1.ToolCallSpec, a struct {
			Path       string `json:"path"`
			Content    string `json:"content"`
			Mode       string `json:"mode"`
			CreateDirs *bool  `json:"create_dirs"`
		},
		) {
			s.FileWrite = &v1alpha1.FileWriteArguments{Path: a.Path, Content: a.Content, Mode: a.Mode, CreateDirs: a.CreateDirs == nil || *a.CreateDirs}
		}),
	}
	WebFetch = &Tool{
		Name:        "web_fetch",
		Description: "Fetch a web page and return it as readable text.",
		Schema:      schema[FetchArguments],
		In:          Runs | APIs | Agents, Effects: Reads | Sends,
		Typed: typed(func(s *v1alpha1.ToolCallSpec, a struct {
			URL      string `json:"url"`
			MaxChars int64  `json:"max_chars"`
			Raw      bool   `json:"raw"`
		},
		) {
			s.WebFetch = &v1alpha1.WebFetchArguments{URL: a.URL, Host: host(a.URL), MaxChars: a.MaxChars, Raw: a.Raw}
		}),
	}
	WebSearch = &Tool{
		Name:        "web_search",
		Description: "Search the web.",
		Schema:      schema[SearchArguments],
		In:          Runs | APIs | Agents, Effects: Reads | Sends, Dispensable: true,
		Typed: typed(func(s *v1alpha1.ToolCallSpec, a struct {
			Query string `json:"query"`
			Limit int64  `json:"limit"`
		},
		) {
			s.WebSearch = &v1alpha1.WebSearchArguments{Query: a.Query, Limit: a.Limit}
		}),
	}
)

// CodeArguments are the arguments of code_exec.
type CodeArguments struct {
	Language string `json:"language" desc:"Language of the code"`
	Code     string `json:"code" desc:"Program to run; it has no standard input" minLength:"1"`
	Timeout  *int   `json:"timeout,omitempty" desc:"Seconds the program may take, at most 60" minimum:"1" default:"30"`
}

// Languages are those that code_exec knows. Some have two names, because models use either.
func Languages() []string { return []string{"python", "javascript", "bash", "python3", "node", "sh"} }

// NoNetwork is what the description of code_exec says of programs without a network.
const NoNetwork = " It has no network."

// ForLanguages is the definition of code_exec for a run that has these languages. It says nothing of the network.
func ForLanguages(names []string) tool.Definition {
	return tool.Definition{Name: CodeExec.Name, Description: codeDescription(names), Parameters: codeSchema(names)}
}

func codeDescription(languages []string) string {
	return "Run a short program in the working folder and return what it prints. Languages: " + strings.Join(languages, ", ") + "."
}

func codeSchema(languages []string) json.RawMessage {
	return tool.SchemaOf[CodeArguments](tool.Choice{Argument: "language", Values: languages})
}

// ReadArguments are the arguments of file_read.
type ReadArguments struct {
	Path   string `json:"path" desc:"File to read; relative paths start in the working folder" minLength:"1"`
	Offset int64  `json:"offset,omitempty" desc:"Byte to start at" minimum:"0" default:"0"`
	Limit  *int64 `json:"limit,omitempty" desc:"Most bytes to return: at most 1048576, a higher number counts as that" minimum:"1" default:"65536"`
}

// WriteArguments are the arguments of file_write.
type WriteArguments struct {
	Path       string `json:"path" desc:"File to write; relative paths start in the working folder" minLength:"1"`
	Content    string `json:"content" desc:"Text to write"`
	Mode       string `json:"mode,omitempty" desc:"write replaces the file, append adds to its end" enum:"write,append" default:"write"`
	CreateDirs *bool  `json:"create_dirs,omitempty" desc:"Create missing folders" default:"true"`
}

// FetchArguments are the arguments of web_fetch.
type FetchArguments struct {
	URL      string `json:"url" desc:"Page to fetch, http or https" minLength:"1"`
	MaxChars *int   `json:"max_chars,omitempty" desc:"Most characters to return" minimum:"1" default:"50000"`
	Raw      bool   `json:"raw,omitempty" desc:"Return the page's source in place of readable text" default:"false"`
}

// SearchArguments are the arguments of web_search.
type SearchArguments struct {
	Query string `json:"query" desc:"What to look for" minLength:"1"`
	Limit *int   `json:"limit,omitempty" desc:"Most results to return" minimum:"1" maximum:"50" default:"5"`
}

// host returns the host that an address names, as policies compare it.
func host(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
}
