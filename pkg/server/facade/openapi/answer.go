// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/platform-ai/platform/pkg/server/facade/rest"
	"github.com/platform-ai/platform/pkg/sse"
)

// success describes the answer of a row.
func (b *builder) success(r rest.Row) (object, error) {
	a := r.Answer
	code := cmp.Or(a.Code, a.Passes, http.StatusOK)
	response := object{"description": http.StatusText(code)}
	out := object{strconv.Itoa(code): response}
	switch {
	case a.Code == http.StatusNoContent || a.Passes != 0:
		return out, nil
	case a.Document:
		response["content"] = content("application/json", object{"type": "object"})
		return out, nil
	case a.Media == sse.ContentType:
		response["content"] = stream()
		if a.Over {
			out[strconv.Itoa(http.StatusNoContent)] = object{"description": "The stream has ended, and the client that reconnects (Last-Event-ID) has all of it."}
		}
		return out, nil
	case a.Media != "":
		response["content"] = content(a.Media, object{"type": "string", "format": "binary"})
		return out, nil
	}
	schema, err := b.answer(r)
	if err != nil {
		return nil, err
	}
	response["content"] = content("application/json", schema)
	for code, text := range a.Also {
		out[strconv.Itoa(code)] = object{"description": text, "content": response["content"]}
	}
	return out, nil
}

// kindOf returns the definition of a native answer.
func (b *builder) kindOf(n rest.Native) (string, error) {
	if n.Ask != "" && b.Kinds[n.Verb+" "+n.Resource()] == "" {
		return b.types.kind(n.Ask)
	}
	kind := cmp.Or(b.Kinds[n.Verb+" "+below(n)], b.Kinds[n.Verb+" "+n.Resource()], b.Kinds[n.Resource()])
	if kind == "" {
		return "", fmt.Errorf("the kind of %s %s is not listed", n.Verb, n.Resource())
	}
	if n.Verb == "list" {
		kind += "List"
	}
	return b.types.kind(kind)
}

// below returns the resource of a native request with the fixed path below its subresource, as "tasks/events/counts".
func below(n rest.Native) string {
	if s := strings.Split(n.Path, "/"); len(s) > 3 && s[0] != "" && !strings.HasPrefix(s[3], ":") {
		return n.Resource() + "/" + s[3]
	}
	return n.Resource()
}

// answer returns the schema of a JSON answer.
func (b *builder) answer(r rest.Row) (any, error) {
	a := r.Answer
	if a.Fields == nil {
		name, err := b.kindOf(r.Native[len(r.Native)-1])
		if err != nil {
			return nil, err
		}
		if len(a.Drop) == 0 {
			return b.types.refer(name), nil
		}
		members, required, err := b.types.properties(name)
		if err != nil {
			return nil, err
		}
		for _, drop := range a.Drop {
			delete(members, drop)
			required = slices.DeleteFunc(slices.Clone(required), func(s string) bool { return s == drop })
		}
		return objectOf(members, required), nil
	}
	members, required, err := b.fields(r.Native, a.Fields)
	if err != nil {
		return nil, err
	}
	if a.Bare {
		return members[a.Fields[0].Name], nil
	}
	if a.Of != "" {
		return b.extended(r, members, required)
	}
	return objectOf(members, required), nil
}

// extended returns the schema of a native answer with further members.
func (b *builder) extended(r rest.Row, members object, required []string) (any, error) {
	i := slices.IndexFunc(r.Native, func(n rest.Native) bool { return n.Name == r.Answer.Of })
	name, err := b.kindOf(r.Native[i])
	if err != nil {
		return nil, err
	}
	base, needed, err := b.types.properties(name)
	if err != nil {
		return nil, err
	}
	maps.Copy(members, base)
	if !r.Native[i].Optional {
		required = append(required, needed...)
	}
	return objectOf(members, required), nil
}
