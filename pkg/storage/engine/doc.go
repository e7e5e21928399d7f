// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package engine is the contract of the platform's one store: an ordered set of keys with a single revision
// counter and a single point where writes are put in order. Package local implements it on this machine's
// disk. The packages of pkg/storage that are built on an engine (backup, blob, eventlog, fulltext, ledger, object, owned,
// quota, spending, transcript and turn) know only this package; pkg/server chooses the implementation. test/arch/layers.txt
// says who may import one. Package enginetest tests every engine against the
// contract below.
//
// A write is a Txn. Writers that arrive while a group is being made durable form the next group, and the
// first of them leads it. The leader sequences each Txn of the group against sequenced state, puts all of
// them into one batch, syncs the batch once, hands leadership on and publishes the group in order.
//
// Every engine promises:
//
//   - Order. There is one commit leader at a time. Calls of Sequence, revisions, durability and calls of
//     Publish all follow the same order. No two calls of Sequence, and no two of Publish, are concurrent.
//   - Groups. The batch of a group is atomic: after a crash the store holds all of it or none of it.
//     Concurrent writers share one sync, and none holds a lock during it.
//   - Revisions. Next returns the counter's next number, starting at 2 in a fresh store. A refused Txn
//     returns its revisions to the counter and leaves no writes. Revision never decreases. After a crash it
//     is at least every revision that was published, so no revision that anyone has seen is assigned twice.
//   - Durability. Nothing is published or acknowledged before it is durable.
//   - Change feed. Publish is called once for each committed Txn, in order, before Commit returns. A refused
//     Txn is answered after its group is published, so the loser of a race reads the state that won. A
//     caller that publishes and calls Advance under its own lock can serve watches without a gap and
//     without reading the store.
//   - Reading. An iterator sees the state at the moment it was made. A batch is visible to readers before it
//     is durable. A keyspace must therefore bound its reads by what it has published and never read "latest".
//   - Overlap. The Overlap of a Txn that was committed and wrote something runs once; that of any other Txn runs at most
//     once. It runs on the goroutine that called Commit, and Commit returns after it.
//   - Failure. Once the outcome of a write is unknown, nothing more is acknowledged or published: every write
//     returns ErrFailed, and the owner of the engine is notified once so that the process can end. After a
//     restart the store shows whether the write was kept.
//   - Room. When free space falls below a reserve, writes are refused with ErrFull according to their Need:
//     first Grow, then Upkeep, last Free, and never Nothing. Reads continue and the store counts as healthy and ready. Writes
//     are accepted again when there is room, without a restart.
//   - Damage. Data that was changed on its medium is never returned. Reading it returns ErrDamaged, and an iterator that
//     meets it stops or goes on after it, with that error. All other data can be read, writes are accepted, and the store
//     counts as healthy and ready, because a restart would not help. An engine whose opening needs such data cannot be
//     opened.
//   - Readiness. An open store is ready while it works and its storage answers in time. If the storage stops answering, the
//     store becomes unready, whether or not anything is written, and stays healthy: writes wait. It becomes ready again, and
//     the writes end, when the storage answers.
//   - Checkpoint. A copy holds the state at one revision, including every write that was acknowledged before
//     the copy was requested, and does not change. When opened, it is the same store with the same ID.
//   - One writer. While an engine has a store open, no other engine can write to it.
//   - Close returns after every operation in flight has ended, and loses nothing.
//
// An engine knows nothing about the meaning of keys beyond their first byte, which names the keyspace.
// FORMAT.md lists all keyspaces.
package engine
