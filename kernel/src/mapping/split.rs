//! Large pages become small ones (X.2 rules 7.39, 8.4).
//!
//! A split takes a table of 512 entries and as many nodes. They are made beforehand, a group at a
//! time between looks for interrupts, and nothing refers to them until they are put in their place
//! in one step: so a split that gives way has changed nothing. What is made depends on the large
//! page alone. If the page is gone or another one when the operation goes on, what was made is
//! thrown away.
use x2::Rights;

use super::changes::Noted;
use super::cursor::Progress;
use super::node::{GROUP, NodeId, alloc_group, free_group};
use super::spare;
use super::table::Table;
use super::turn::{LONG_STEP, Turn, Work};
use crate::arch::page_entry::{ENTRIES, PageEntry, page_bits};
use crate::memory::{Account, OutOfMemory};

/// The work of preparing a group of nodes.
const PREPARE: Work = 40;

/// The table that will take the place of a large page, with the nodes of its entries: as many as it
/// has used, in groups. No space or tree has it yet, so it is under no lock but its owner's.
pub(super) struct Prepared {
    /// The number of the prepared table; 0 = none.
    table: u32,
    /// The account that pays for the table: the space may be gone.
    account: Account,
}

impl Prepared {
    pub(super) const NONE: Self = Self { table: 0, account: Account::KERNEL };

    fn table(&self) -> Option<Table> {
        Table::from_raw(self.table)
    }

    pub(super) fn is_some(&self) -> bool {
        self.table != 0
    }

    /// How many nodes there are that are in no tree.
    #[cfg(test)]
    pub(super) fn nodes(&self) -> u32 {
        self.table().map_or(0, Table::used)
    }

    /// Frees the nodes and tables that were prepared and not used.
    #[cold]
    pub(super) fn discard(&mut self) {
        if let Some(table) = self.table() {
            let groups = (0..table.used() as usize).step_by(GROUP);
            groups.for_each(|piece| free_group(table.entry(piece).node()));
            table.free_prepared(self.account);
        }
        self.table = 0;
    }

    /// The table for the page that maps `node`: the part that exists already, or a new one.
    fn table_for(&mut self, node: NodeId) -> Result<Table, OutOfMemory> {
        let at = node.entry();
        let (space, start, level) = (at.table().space(), at.virtual_address(), node.level() - 1);
        let account = space.memory().account();
        if let Some(table) = self.table() {
            let first = table.entry(0);
            let is_begun = table.used() != 0;
            if account == self.account
                && table.is_for(space, start, level)
                && (!is_begun
                    || first.node().is_prepared_for(node) && first.load() == part_of(at.load(), 0, level))
            {
                return Ok(table);
            }
            self.discard();
        }
        let table = Table::alloc_in(space.memory(), level, start)?;
        *self = Self { table: table.raw(), account };
        table.entry(0).for_node()?;
        Ok(table)
    }
}

/// The entry that part `piece`, of `level`, of a large page gets when the page is split.
fn part_of(page: PageEntry, piece: usize, level: u32) -> PageEntry {
    page.without_status().part(piece, level + 1)
}

/// Splits the large page that maps `node` into parts of the next smaller size. The node stays as
/// their parent. All or nothing: on failure, and while it is not done, everything is as before.
/// Under the tree lock. Preemption point: called again with the same `prepared` after `Preempted`.
#[cold]
pub(super) fn split(
    node: NodeId,
    prepared: &mut Prepared,
    turn: &mut Turn,
) -> Result<Progress<()>, OutOfMemory> {
    loop {
        let result = prepare(node, prepared, turn);
        if result.is_err() {
            prepared.discard();
            if spare::give_back() {
                continue;
            }
        }
        return result;
    }
}

fn prepare(node: NodeId, prepared: &mut Prepared, turn: &mut Turn) -> Result<Progress<()>, OutOfMemory> {
    let table = prepared.table_for(node)?;
    let mut gets_done = false;
    while (table.used() as usize) < ENTRIES {
        // Each call does some work before it gives way to an interrupt.
        if gets_done && turn.gives_way(PREPARE) {
            return Ok(Progress::Preempted);
        }
        turn.did(if gets_done { 0 } else { PREPARE });
        gets_done = true;
        prepare_group(node, table)?;
    }
    if gets_done && turn.gives_way(LONG_STEP) {
        return Ok(Progress::Preempted);
    }
    node.make_parts(node.account())?;
    install(node, table, turn);
    prepared.table = 0;
    turn.did(LONG_STEP);
    Ok(Progress::Done(()))
}

/// Makes the nodes and the entries of the next pieces.
fn prepare_group(node: NodeId, table: Table) -> Result<(), OutOfMemory> {
    let (page, level) = (node.entry().load(), node.level() - 1);
    let first = alloc_group(node.account())?;
    let begin = table.used() as usize;
    for (number, piece) in (begin..begin + GROUP).enumerate() {
        let part = first.later(number as u32);
        let at = table.entry(piece);
        part.prepare(node, level, at);
        let at = at.ready_for_node().expect("the table was made ready when it was made");
        at.prepare(part_of(page, piece, level), part);
    }
    table.set_used(begin + GROUP);
    Ok(())
}

/// Puts a complete table and its nodes in the place of the page that maps `node`.
fn install(node: NodeId, table: Table, turn: &mut Turn) {
    let at = node.entry();
    let (page, level) = (at.load(), node.level());
    let (space, start) = (at.table().space().memory(), at.virtual_address());
    let address = page.address().align_down(page_bits(level));
    node.link_parts(table);
    if !node.mine(Rights::NONE).is_none() {
        (0..ENTRIES).for_each(|piece| table.entry(piece).node().inherit_status(node));
    }
    if !page.status().is_none() {
        (0..ENTRIES).for_each(|piece| table.entry(piece).set_status_of(page));
    }
    turn.changes.invalidate(space, start);
    let _lock = space.lock();
    at.replace_by_table(table);
    node.mine(Rights::ALL);
    node.clear_entry(address);
}
