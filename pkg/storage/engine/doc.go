// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package engine is the contract of the one store of the platform: an ordered set of
// keys with a single revision counter and a single point where writes are put in
// order. Package local is the engine of today, on this machine's disk. What is built
// upon an engine (object, eventlog, blob, transcript, quota, backup) knows this
// package alone, and enginetest holds every engine to what stands here.
//
// A write is a Txn. Writers that arrive while a group is being made durable form the
// next group; the first of them leads it. The leader sequences each Txn of the group
// against sequenced state, puts all of them into one batch, makes it durable once,
// hands leadership on and publishes the group in order.
//
// Every engine promises:
//
//   - Order. There is one commit leader at a time. Order of Sequence = order of
//     revisions = order in which writes become durable = order of Publish. No two
//     calls of Sequence, and no two of Publish, are concurrent.
//   - Groups. The batch of a group is atomic: after a crash all of it is there or
//     nothing. Concurrent writers share one sync, and none holds a lock during it.
//   - Revisions. Next gives the counter's next number, from 2 in a fresh store. A
//     refused Txn gives its revisions back, and leaves nothing. Revision never
//     decreases, and after a crash it is at least every revision that was published,
//     so none is given twice for what somebody has seen.
//   - Durability. Nothing is published, or acknowledged, before it is durable.
//   - Change feed. Publish is called once for each committed Txn, in order, before
//     Commit returns; a refused Txn is answered after its group is published, so that
//     who lost a race reads the state that won. What publishes and calls Advance under
//     its own lock can serve watches without a gap and without asking the store.
//   - Reading. An iterator sees one state, that of its making. A batch is visible to
//     readers before it is durable. A keyspace must therefore bound its reads by what
//     it published, and never read "latest".
//   - Failure. When the outcome of a write is not known, nothing is acknowledged or
//     published from then on: every write is ErrFailed, and whoever owns the engine is
//     told once, so that the process ends. A restart shows what became of the write.
//   - Room. Below a reserve, writes are refused with ErrFull by their Need: first Grow,
//     then Upkeep, last Free. Reads go on, the store counts as healthy, and writes are
//     taken again when there is room, without a restart.
//   - Checkpoint. A copy is at one revision, has every write that was acknowledged before it was asked for, and does
//     not change. Opened, it is the same store: it has its ID.
//   - One writer. While an engine has a store open, no other can write to it.
//   - Close ends after every operation in flight, and loses nothing.
//
// An engine knows nothing of what keys mean beyond their first byte, which names the
// keyspace; FORMAT.md lists them all.
package engine
