// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package archive is the format of a backup: one tar with the files of a store. It writes, reads, checks
// and saves such a tar. It does not depend on the engine that owns the files, so that a client can use it.
// Package backup makes an archive from a store and a store from an archive.
//
//	platform-backup.json   the manifest: versions, revision, time, and every file with its size
//	store/NAME             the files of an engine checkpoint, in the order of the list
//	SHA256SUMS             the digests of all of the above, as sha256sum writes them
//
// Sizes are known before a file is read, digests only afterwards. The list of files therefore comes first
// and bounds how much a reader accepts, and the digests come last. To put them first, each file would have
// to be read twice, and a backup must not keep the store's disk busy. The last entry also distinguishes a
// complete backup from one that was cut off.
//
// Writing and reading need the same small amount of memory regardless of the size of the store.
package archive

import (
	"errors"
	"fmt"
	"io"
)

const (
	// Path is the URL path at which a server returns its backup to users who are permitted to get it.
	Path = "/backup"
	// ContentType is the media type of a backup.
	ContentType = "application/x-tar"
	// Format is the version of the tar's layout, apart from the store's files.
	Format = "platform-backup/1"
	// StoreLayout is the layout of stores that can be restored, which is that of this version's engine.
	StoreLayout = "platform-store/1"
	// StoreFolder is the folder of the store's files in the tar, and in the data folder of a server.
	StoreFolder = "store"
)

const (
	manifestName = "platform-backup.json"
	sumsName     = "SHA256SUMS"

	// maxManifest is enough for a hundred thousand files, which hold terabytes.
	maxManifest = 8 << 20
	// maxSums follows from maxManifest: a line of sums is at most a little longer than an entry of the manifest.
	maxSums = 2 * maxManifest

	filePerm   = 0o600
	copyBuffer = 256 << 10
)

// ErrInvalid reports data that is not a complete and unchanged backup.
var ErrInvalid = errors.New("not a valid backup")

// VersionError refuses a backup of another format.
type VersionError struct {
	// What names the part that has the version: the backup or the store in it.
	What string
	// Have is its version, and Want is the version that this program reads.
	Have, Want string
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("backup: the %s has format %q, this program reads %q only; use the version of platform that wrote it", e.What, e.Have, e.Want)
}

// copyExactly copies n bytes. If src ends earlier, it returns io.ErrUnexpectedEOF.
func copyExactly(dst io.Writer, src io.Reader, n int64, buf []byte) error {
	// The struct hides WriteTo and ReadFrom, which would not use buf.
	got, err := io.CopyBuffer(struct{ io.Writer }{dst}, io.LimitReader(src, n), buf)
	if err == nil && got < n {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// Bytes formats a number of bytes for people.
func Bytes(n int64) string {
	switch f := float64(n); {
	case n < 1<<10:
		return fmt.Sprintf("%d bytes", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", f/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.1f MiB", f/(1<<20))
	default:
		return fmt.Sprintf("%.1f GiB", f/(1<<30))
	}
}
