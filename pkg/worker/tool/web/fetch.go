// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package web provides the tools web_fetch and web_search. Both dial through an egress.Guard,
// so that a model, or a page that it reads, cannot reach the worker's internal network.
package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/net/html/charset"

	"github.com/platform-ai/platform/pkg/clip"
	"github.com/platform-ai/platform/pkg/egress"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/tool/builtin"
	"github.com/platform-ai/platform/pkg/worker/toolkit"
)

const (
	fetchTimeout    = 60 * time.Second
	maxRedirects    = 5
	defaultMaxChars = 50_000
	// maxChars bounds how many characters a model may ask for; no model's context fits more.
	maxChars = 500_000
	// maxBody bounds how much of a page is read, in bytes. The rest is dropped.
	maxBody = 5 << 20
)

// FetchBuiltin is the tool web_fetch.
var FetchBuiltin = toolkit.Tool{Of: builtin.WebFetch, New: func(g toolkit.Given) (tool.Tool, error) {
	return Fetch(egress.Guard{Allow: g.FetchAllow}), nil
}}

// FetchResult is the result of web_fetch. A page with an error status is also a result.
type FetchResult struct {
	// URL is where the content came from, after redirects.
	URL     string `json:"url"`
	Status  int    `json:"status"`
	Content string `json:"content"`
	// Length is the number of characters of the whole text.
	Length    int  `json:"length"`
	Truncated bool `json:"truncated"`
	// Extractor says how the content was produced: raw, json, text or markdown.
	Extractor string `json:"extractor"`
}

// Fetch returns the tool web_fetch.
func Fetch(guard egress.Guard) tool.Tool {
	return (&fetcher{client: client(guard, checkRedirect)}).tool()
}

type fetcher struct{ client *http.Client }

func (f *fetcher) tool() tool.Tool {
	return tool.New(builtin.WebFetch.Definition(), f.call)
}

func client(guard egress.Guard, redirect func(*http.Request, []*http.Request) error) *http.Client {
	return &http.Client{Transport: guard.Transport(), CheckRedirect: redirect, Timeout: fetchTimeout}
}

var errTooManyRedirects = errors.New("more than 5 redirects")

func checkRedirect(r *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return errTooManyRedirects
	}
	_, err := checkURL(r.URL.String())
	return err
}

// checkURL refuses what is not a plain web address.
func checkURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return nil, tool.InvalidArguments("the url cannot be parsed")
	case u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		return nil, tool.InvalidArguments("the url must be absolute and begin with http:// or https://")
	case u.User != nil:
		return nil, tool.InvalidArguments("the url must not hold a user name or password")
	}
	return u, nil
}

func (f *fetcher) call(ctx context.Context, a builtin.FetchArguments) (any, error) {
	u, err := checkURL(a.URL)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, tool.InvalidArguments("the url cannot be used")
	}
	req.Header.Set("User-Agent", userAgent)
	req.Header.Set("Accept", "text/html,application/xhtml+xml,application/json,text/plain;q=0.9,*/*;q=0.5")
	res, err := f.client.Do(req)
	if err != nil {
		return nil, transportError(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, cut, err := toolkit.ReadAtMost(res.Body, maxBody)
	if err != nil {
		return nil, transportError(err)
	}
	text, extractor, err := extract(body, res.Header.Get("Content-Type"), a.Raw, cut)
	if err != nil {
		return nil, err
	}
	limit := defaultMaxChars
	if a.MaxChars != nil {
		limit = min(*a.MaxChars, maxChars)
	}
	out := &FetchResult{URL: res.Request.URL.String(), Status: res.StatusCode, Length: utf8.RuneCountInString(text), Extractor: extractor}
	out.Content, out.Truncated = firstChars(text, limit)
	out.Truncated = out.Truncated || cut
	return out, nil
}

const userAgent = "platform-web-fetch/1.0"

// extract turns a body, which may be cut at its end, into text by its media type.
func extract(body []byte, contentType string, raw, cut bool) (text, extractor string, err error) {
	media, _, typeErr := mime.ParseMediaType(contentType)
	if typeErr != nil {
		media, _, _ = mime.ParseMediaType(http.DetectContentType(body))
		contentType = media
	}
	isJSON := media == "application/json" || strings.HasSuffix(media, "+json")
	isHTML := media == "text/html" || media == "application/xhtml+xml"
	isText := strings.HasPrefix(media, "text/") || isJSON || isHTML || media == "application/xml" ||
		strings.HasSuffix(media, "+xml") || media == "application/javascript" || media == "application/yaml" || media == "application/x-ndjson"
	if !isText {
		return "", "", tool.Errorf(tool.TypeInvalidArguments, "the page is %s, not text", media).
			Suggest("fetch a page with text, HTML or JSON")
	}
	body = decode(body, contentType)
	if cut { // in any charset
		body = bytes.TrimSuffix(body, []byte("\uFFFD"))
	}
	switch {
	case raw:
		return string(body), "raw", nil
	case isJSON:
		if pretty, ok := indented(body); ok {
			return pretty, "json", nil
		}
		return string(body), "text", nil
	case isHTML:
		if text, ok := markdown(body); ok {
			return text, "markdown", nil
		}
		// If the conversion fails, return the source.
		return string(body), "raw", nil
	default:
		return string(body), "text", nil
	}
}

// decode converts the page's character set, which pages also name in their text, to UTF-8.
func decode(body []byte, contentType string) []byte {
	_, name, certain := charset.DetermineEncoding(body, contentType)
	if !certain && name == "windows-1252" && utf8.Valid(clip.Whole(body)) {
		name = "utf-8" // the default looks at the beginning only
	}
	return toolkit.UTF8(body, "text/plain; charset="+name)
}

// firstChars returns the first n characters of s, and whether there are more.
func firstChars(s string, n int) (string, bool) {
	for i := range s {
		if n == 0 {
			return s[:i], true
		}
		n--
	}
	return s, false
}

// transportError tells the model why a page could not be fetched. It does not show the
// addresses that a name resolved to.
func transportError(err error) error {
	var typed *tool.Error
	var timeout interface{ Timeout() bool }
	switch {
	case errors.As(err, &typed):
		return typed
	case errors.Is(err, egress.ErrRefused):
		return tool.Errorf(tool.TypePermissionDenied, "the address is not allowed: it is private, local or reserved").
			Suggest("use a public address")
	case errors.Is(err, errTooManyRedirects):
		return tool.Errorf(tool.TypeLimitReached, "the page redirects more than %d times", maxRedirects)
	case errors.As(err, &timeout) && timeout.Timeout():
		return tool.Errorf(tool.TypeTimeout, "the page took longer than %s", fetchTimeout)
	}
	return tool.Errorf(tool.TypeUnavailable, "the page could not be fetched: %s", reason(err)).
		Suggest("check the address, or try another source")
}

// reason is the innermost message of a transport error, without the URL.
func reason(err error) string {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return fmt.Sprint(err)
		}
		err = inner
	}
}
