//! Copying in: the rights of a message move from the sender's names into the message.
//!
//! All rights of a message are moved in one step, or none is. Each right is first *claimed*, which
//! checks that the name has it and that no earlier part of the message takes it away. Then all
//! claims are committed, which cannot fail. The space stays locked from the first claim to the last
//! commit.

use alloc::sync::Arc;
use alloc::vec::{self, Vec};

use super::entry::Object;
use super::message::{Destination, Item, Message};
use super::notify::Later;
use super::port::Port;
use super::right::{Right, SendOnceRight, SendRight};
use super::table::Table;
use super::{MsgErrorKind, Name, Space};
use crate::machine::Machine;
use crate::{KernError, KernResult};

/// How a right gets from a name into a message. The numbers are Mach's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// The receive right is moved.
    MoveReceive = 16,
    /// A reference to the send right is moved.
    MoveSend = 17,
    /// The send-once right is moved.
    MoveSendOnce = 18,
    /// The send right is copied.
    CopySend = 19,
    /// A send right is made from the receive right.
    MakeSend = 20,
    /// A send-once right is made from the receive right.
    MakeSendOnce = 21,
}

impl Disposition {
    /// The disposition with this number in Mach's interface, if there is one.
    pub fn from_number(number: u32) -> Option<Self> {
        Some(match number {
            16 => Self::MoveReceive,
            17 => Self::MoveSend,
            18 => Self::MoveSendOnce,
            19 => Self::CopySend,
            20 => Self::MakeSend,
            21 => Self::MakeSendOnce,
            _ => return None,
        })
    }

    /// The number of the kind of right that the receiver gets.
    pub fn received(self) -> u32 {
        match self {
            Self::MoveReceive => 16,
            Self::MoveSend | Self::CopySend | Self::MakeSend => 17,
            Self::MoveSendOnce | Self::MakeSendOnce => 18,
        }
    }

    /// Whether the task has one reference or right less after the message was sent.
    fn takes(self) -> bool {
        matches!(self, Self::MoveReceive | Self::MoveSend | Self::MoveSendOnce)
    }
}

/// Why a right cannot be claimed: the name denotes nothing, it has no such right, or no memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoClaim {
    Name,
    Right,
    Memory,
}

impl From<NoClaim> for KernError {
    fn from(error: NoClaim) -> Self {
        match error {
            NoClaim::Name => KernError::InvalidName,
            NoClaim::Right => KernError::InvalidRight,
            NoClaim::Memory => KernError::ResourceShortage,
        }
    }
}

/// A send-once right that a claim has made, so that committing it cannot fail.
pub(super) type Made<M> = Option<SendOnceRight<M>>;

impl<M: Machine> Table<M> {
    /// Checks that a name has the right that a message is to carry, and records that the message
    /// takes it.
    pub(super) fn claim(&mut self, name: Name, disposition: Disposition) -> Result<Made<M>, NoClaim> {
        let entry = self.get(name).ok_or(NoClaim::Name)?;
        let is_left = entry.references > entry.claimed;
        match (disposition, &entry.object) {
            (Disposition::MoveReceive, Object::Receive(_) | Object::SendReceive(..))
                if !entry.claimed_right =>
            {
                entry.claimed_right = true;
            }
            (Disposition::MakeSend, Object::Receive(_) | Object::SendReceive(..)) if !entry.claimed_right => {
            }
            (Disposition::MakeSendOnce, Object::Receive(right) | Object::SendReceive(_, right))
                if !entry.claimed_right =>
            {
                return SendOnceRight::make(right.port()).map(Some).map_err(|_| NoClaim::Memory);
            }
            (Disposition::MoveSend, Object::Send(_) | Object::SendReceive(..) | Object::Dead)
            | (Disposition::MoveSendOnce, Object::Dead)
                if is_left =>
            {
                entry.claimed += 1;
            }
            (Disposition::CopySend, Object::Send(_) | Object::SendReceive(..) | Object::Dead) if is_left => {}
            (Disposition::MoveSendOnce, Object::SendOnce(_)) if !entry.claimed_right => {
                entry.claimed_right = true;
            }
            _ => return Err(NoClaim::Right),
        }
        Ok(None)
    }

    /// Makes a send-once right to the port of a name's receive right. `None`, and nothing has
    /// changed: the name has no such right, or there is no memory.
    #[inline]
    pub(super) fn make_send_once(&mut self, name: Name) -> Made<M> {
        let entry = self.get(name)?;
        match &entry.object {
            Object::Receive(right) | Object::SendReceive(_, right) if !entry.claimed_right => {
                SendOnceRight::make(right.port()).ok()
            }
            _ => None,
        }
    }

    /// Takes back what [`claim`](Self::claim) has recorded, because the message will not be sent.
    pub(super) fn unclaim(&mut self, name: Name, disposition: Disposition, made: Made<M>) {
        if let Some(made) = made {
            made.use_up();
        }
        let Some(entry) = self.get(name).filter(|_| disposition.takes()) else { return };
        // If the port has died since the claim, the claim is on a reference to the dead name.
        if disposition == Disposition::MoveSend || matches!(entry.object, Object::Dead) {
            entry.claimed -= 1;
        } else {
            entry.claimed_right = false;
        }
    }

    /// Takes or makes the right that was claimed. If the name goes away with it, the requests on
    /// the name end; a dead-name request to the port `silent` ends without a notification.
    pub(super) fn commit(
        &mut self,
        name: Name,
        disposition: Disposition,
        made: Made<M>,
        silent: Option<&Arc<Port<M>>>,
        later: &mut Later<M>,
    ) -> Right<M> {
        if let Some(made) = made {
            return Right::SendOnce(made);
        }
        let Some(entry) = self.get(name) else { return Right::Dead };
        match (disposition, &entry.object) {
            (Disposition::MakeSend, _) => {
                entry.receive_port().and_then(SendRight::make).map_or(Right::Dead, Right::Send)
            }
            (Disposition::CopySend, Object::Send(right) | Object::SendReceive(right, _)) => {
                right.copy().map_or(Right::Dead, Right::Send)
            }
            (Disposition::CopySend, _) => Right::Dead,
            (Disposition::MoveReceive, _) => self.take_receive_right(name, silent, later),
            (_, Object::SendOnce(_)) => match self.remove(name, silent, later).map(|entry| entry.object) {
                Some(Object::SendOnce(right)) => Right::SendOnce(right),
                _ => Right::Dead,
            },
            _ => self.take_reference(name, silent, later),
        }
    }

    /// Takes one claimed reference to a send right or a dead name.
    fn take_reference(
        &mut self,
        name: Name,
        silent: Option<&Arc<Port<M>>>,
        later: &mut Later<M>,
    ) -> Right<M> {
        let Some(entry) = self.get(name) else { return Right::Dead };
        entry.claimed -= 1;
        entry.references -= 1;
        if entry.references > 0 {
            return match &entry.object {
                Object::Send(right) | Object::SendReceive(right, _) => {
                    right.copy().map_or(Right::Dead, Right::Send)
                }
                _ => Right::Dead,
            };
        }
        if matches!(entry.object, Object::SendReceive(..)) {
            let mut taken = Right::Dead;
            self.replace(name, |object| match object {
                Object::SendReceive(send, receive) => {
                    taken = Right::Send(send);
                    Object::Receive(receive)
                }
                other => other,
            });
            return taken;
        }
        match self.remove(name, silent, later).map(|entry| entry.object) {
            Some(Object::Send(right)) => Right::Send(right),
            _ => Right::Dead,
        }
    }

    fn take_receive_right(
        &mut self,
        name: Name,
        silent: Option<&Arc<Port<M>>>,
        later: &mut Later<M>,
    ) -> Right<M> {
        let Some(entry) = self.get(name) else { return Right::Dead };
        entry.claimed_right = false;
        let mut taken = None;
        if matches!(entry.object, Object::SendReceive(..)) {
            self.replace(name, |object| match object {
                Object::SendReceive(send, receive) => {
                    taken = Some(receive);
                    Object::Send(send)
                }
                other => other,
            });
        } else if let Some(Object::Receive(receive)) =
            self.remove(name, silent, later).map(|entry| entry.object)
        {
            taken = Some(receive);
        }
        let Some(right) = taken else { return Right::Dead };
        later.take_receive_right(&right);
        Right::Receive(right)
    }
}

/// The name and the disposition of a right in a message's header.
pub(super) type HeaderRight = (Name, Disposition);

/// Something that a message is to carry, before it is copied in.
pub(super) enum Parcel<M: Machine> {
    Right(Name, Disposition),
    Rights(Vec<Name>, Disposition),
    /// Memory that has been read from the sender already.
    Ready(Item<M>),
}

/// The claims of a message's body, which can be taken back together.
struct Claims<'a, M: Machine> {
    table: &'a mut Table<M>,
    /// The send-once rights that the claims have made, in the order of the claims.
    made: Vec<SendOnceRight<M>>,
}

impl<M: Machine> Claims<'_, M> {
    /// Claims a right of the body. The null name and the dead name need no claim: they travel as
    /// they are.
    fn claim(&mut self, name: Name, disposition: Disposition) -> Result<(), NoClaim> {
        if name.is_valid() {
            self.made.extend(self.table.claim(name, disposition)?);
        }
        Ok(())
    }

    /// Claims all rights of the body. On an error none stays claimed.
    fn claim_all(&mut self, parcels: &[(u32, Parcel<M>)]) -> Result<(), NoClaim> {
        let mut claimed = 0;
        let result = each_right(parcels).try_for_each(|(name, disposition)| {
            self.claim(name, disposition)?;
            claimed += 1;
            Ok(())
        });
        if result.is_err() {
            let mut made = core::mem::take(&mut self.made).into_iter();
            for (name, disposition) in each_right(parcels).take(claimed).filter(|(name, _)| name.is_valid()) {
                let made = made_by(disposition, &mut made);
                self.table.unclaim(name, disposition, made);
            }
        }
        result
    }
}

/// The send-once right that the claim has made, if the disposition makes one: the next of `made`.
fn made_by<M: Machine>(disposition: Disposition, made: &mut vec::IntoIter<SendOnceRight<M>>) -> Made<M> {
    if disposition == Disposition::MakeSendOnce { made.next() } else { None }
}

/// The names and dispositions of all rights in the parcels, in order.
fn each_right<M: Machine>(parcels: &[(u32, Parcel<M>)]) -> impl Iterator<Item = (Name, Disposition)> {
    parcels.iter().flat_map(|(_, parcel)| {
        let (one, many, disposition) = match parcel {
            Parcel::Right(name, disposition) => (Some(*name), &[][..], *disposition),
            Parcel::Rights(names, disposition) => (None, names.as_slice(), *disposition),
            Parcel::Ready(_) => (None, &[][..], Disposition::CopySend),
        };
        one.into_iter().chain(many.iter().copied()).map(move |name| (name, disposition))
    })
}

impl<M: Machine> Space<M> {
    /// Moves all rights that a message is to carry from the space into the message, in one step.
    /// Never blocks. The port `cancel` is not told if the destination's name goes away.
    ///
    /// # Errors
    /// Nothing has changed after an error. `SendInvalidDest`, `SendInvalidReply`,
    /// `SendInvalidRight`: a name does not have the right that the disposition needs.
    /// `SendNoBuffer`: no memory.
    pub(super) fn copyin(
        &self,
        message: &mut Message<M>,
        remote: HeaderRight,
        local: (Name, Option<Disposition>),
        parcels: Vec<(u32, Parcel<M>)>,
        cancel: Option<&Arc<Port<M>>>,
    ) -> Result<(), MsgErrorKind> {
        let mut later = Later::new();
        let mut table = self.table.lock();
        let reply = local.1.filter(|_| local.0.is_valid()).map(|disposition| (local.0, disposition));
        let header = claim_header(&mut table, remote, reply)?;
        let mut claims = Claims { table: &mut *table, made: Vec::new() };
        if let Err(error) = claims.claim_all(&parcels) {
            let [destination, answer] = header;
            table.unclaim(remote.0, remote.1, destination);
            if let Some((name, disposition)) = reply {
                table.unclaim(name, disposition, answer);
            }
            return Err(body_error(error));
        }

        // All claims were made, and to commit a claim cannot fail.
        let mut made = claims.made.into_iter();
        let (destination, answer) = commit_header(&mut table, remote, reply, header, cancel, &mut later);
        let no_reply = || if local.0 == Name::DEAD { Right::Dead } else { Right::Null };
        (message.destination, message.reply) = (destination, answer.unwrap_or_else(no_reply));
        for (place, parcel) in parcels {
            let mut commit = |name: Name, disposition| {
                if !name.is_valid() {
                    return if name == Name::DEAD { Right::Dead } else { Right::Null };
                }
                message.moves_receive_right |= disposition == Disposition::MoveReceive;
                let made = made_by(disposition, &mut made);
                table.commit(name, disposition, made, None, &mut later)
            };
            let item = match parcel {
                Parcel::Right(name, disposition) => Item::Right(commit(name, disposition)),
                Parcel::Rights(names, disposition) => {
                    Item::Rights(names.into_iter().map(|name| commit(name, disposition)).collect())
                }
                Parcel::Ready(item) => item,
            };
            message.items.push((place, item));
        }
        Ok(())
    }

    /// Makes a send-once right to the port of a receive right, for a notification.
    pub(super) fn notify_right(&self, name: Name) -> KernResult<SendOnceRight<M>> {
        self.change(|table, _| table.claim(name, Disposition::MakeSendOnce)?.ok_or(KernError::InvalidRight))
    }
}

/// Whether the reply's right must be taken before the destination's. That is so if both have one
/// name, and the destination takes the right that the reply copies or is made from.
fn reply_comes_first(remote: HeaderRight, reply: Option<HeaderRight>) -> bool {
    reply.is_some_and(|reply| reply.0 == remote.0 && remote.1.takes() && !reply.1.takes())
}

/// Takes the rights of a header that were claimed. The port `cancel` is not told if the
/// destination's name goes away.
pub(super) fn commit_header<M: Machine>(
    table: &mut Table<M>,
    remote: HeaderRight,
    reply: Option<HeaderRight>,
    [destination, answer]: [Made<M>; 2],
    cancel: Option<&Arc<Port<M>>>,
    later: &mut Later<M>,
) -> (Destination<M>, Option<Right<M>>) {
    let commit_reply = |table: &mut Table<M>, later: &mut Later<M>| {
        reply.map(|(name, disposition)| table.commit(name, disposition, answer, None, later))
    };
    let (destination, answer) = if reply_comes_first(remote, reply) {
        let answer = commit_reply(table, later);
        (table.commit(remote.0, remote.1, destination, cancel, later), answer)
    } else {
        let destination = table.commit(remote.0, remote.1, destination, cancel, later);
        (destination, commit_reply(table, later))
    };
    let destination = match destination {
        Right::Send(right) => Destination::Send(right),
        Right::SendOnce(right) => Destination::SendOnce(right),
        // The destination's port has died since the claim, so the message has none.
        _ => Destination::None,
    };
    (destination, answer)
}

/// Claims the rights of a header: destination and reply. On an error none stays claimed.
pub(super) fn claim_header<M: Machine>(
    table: &mut Table<M>,
    remote: HeaderRight,
    reply: Option<HeaderRight>,
) -> Result<[Made<M>; 2], MsgErrorKind> {
    let destination = |table: &mut Table<M>| {
        let is_dead = table.get(remote.0).is_none_or(|entry| matches!(entry.object, Object::Dead));
        match table.claim(remote.0, remote.1) {
            Err(NoClaim::Memory) => Err(MsgErrorKind::SendNoBuffer),
            Err(_) => Err(MsgErrorKind::SendInvalidDest),
            Ok(_) if is_dead => {
                table.unclaim(remote.0, remote.1, None);
                Err(MsgErrorKind::SendInvalidDest)
            }
            Ok(made) => Ok(made),
        }
    };
    let answer = |table: &mut Table<M>| match reply {
        None => Ok(None),
        Some((name, disposition)) => table.claim(name, disposition).map_err(|error| match error {
            NoClaim::Memory => MsgErrorKind::SendNoBuffer,
            _ => MsgErrorKind::SendInvalidReply,
        }),
    };
    if let Some((name, disposition)) = reply.filter(|_| reply_comes_first(remote, reply)) {
        let made = answer(table)?;
        match destination(table) {
            Ok(destination) => Ok([destination, made]),
            Err(error) => {
                table.unclaim(name, disposition, made);
                Err(error)
            }
        }
    } else {
        let made = destination(table)?;
        match answer(table) {
            Ok(answer) => Ok([made, answer]),
            Err(error) => {
                table.unclaim(remote.0, remote.1, made);
                Err(error)
            }
        }
    }
}

fn body_error(error: NoClaim) -> MsgErrorKind {
    match error {
        NoClaim::Memory => MsgErrorKind::SendNoBuffer,
        _ => MsgErrorKind::SendInvalidRight,
    }
}
