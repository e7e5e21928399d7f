// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package console is the web console: its page, and what every server of that page does. The API server
// (pkg/server/console) serves it with sessions for tokens, and the command `platform console` with the credentials of a
// kubeconfig.
//
//	dist.go     the built page
//	static.go   serving files: paths, caching, compression
//	headers.go  the walls around the page: content security policy and its kind
//	session.go  sessions: what a cookie and the key of a page stand for
//	request.go  which requests belong to a session, and which are refused
//	login       the page that begins a session
//	web         the sources of dist
package console

import "embed"

// Path is below which the console is served.
const Path = "/console/"

// Files is the built page, in the folder dist.
//
//go:embed dist
var Files embed.FS

//go:embed login
var login embed.FS
