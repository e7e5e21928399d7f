// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package console is the web console: its page, and what every server of that page does. The API server
// (pkg/server/console) serves it with sessions for tokens, and the command `platform console` with the credentials of a
// kubeconfig.
//
//	dist.go     the built page
//	static.go   serving files: paths, caching, compression
//	headers.go  the security headers of the page
//	console.go  the console: its paths, and requests for the API that belong to a session
//	session.go  sessions: what a cookie and the key of a page stand for together
//	seal.go     how the credential of a session is kept
//	request.go  which requests belong to a session, and which are refused
//	login       the page that begins a session
//	web         the sources of dist; its README.md tells how the page works
//
// The page is static and uses the native API, so all that a server of it has to provide is a session. If the kubeconfig of
// `platform console` names kube-apiserver, the page has everything but the REST paths, and its streams are cut after a minute and
// resumed.
//
// Two secrets make a session: a cookie that no script can read, and a key that only pages of the same origin can read and
// send. Browsers send cookies to all ports of a host, and give them to whatever answers there, such as a program that an
// agent made and its owner looks at; SameSite does not tell ports apart. What a page stores belongs to one port, and so does the
// key. A request with only the cookie is unauthenticated, and one that names another origin is refused.
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
