//! Copying out: the rights of a message move from the message into the receiver's names.

use alloc::sync::Arc;

use super::entry::{Entry, MOST_REFERENCES, Object};
use super::notify::Later;
use super::port::Port;
use super::right::{Right, SendOnceRight};
use super::table::Table;
use super::{Name, Space};
use crate::machine::Machine;
use crate::{KernError, KernResult};

impl<M: Machine> Entry<M> {
    /// An entry with this right alone, or `None` for the null right and a dead right.
    pub(super) fn of_right(right: Right<M>) -> Option<Self> {
        Some(match right {
            Right::Send(right) => Self::new(Object::Send(right), 1),
            Right::SendOnce(right) => Self::new(Object::SendOnce(right), 1),
            Right::Receive(right) => Self::new(Object::Receive(right), 0),
            Right::Null | Right::Dead => return None,
        })
    }
}

impl<M: Machine> Table<M> {
    /// Adds a send or receive right to the name that the task has for the port. If there are too
    /// many references, an error is returned; with `clamp` the reference is dropped without an
    /// error.
    ///
    /// # Errors
    /// The right is dropped. `UrefsOverflow`: too many references. `ResourceShortage`: no memory.
    pub(super) fn add_right(
        &mut self,
        name: Name,
        right: Right<M>,
        clamp: bool,
        later: &mut Later<M>,
    ) -> KernResult {
        let only_receives = {
            let entry = self.get(name).ok_or(KernError::InvalidName)?;
            matches!(entry.object, Object::Receive(_))
        };
        match right {
            Right::Send(right) if only_receives => {
                if let Err(error) = self.reserve_send_right() {
                    later.drop_right(Right::Send(right));
                    return Err(error);
                }
                self.replace(name, |object| match object {
                    Object::Receive(receive) => Object::SendReceive(right, receive),
                    other => other,
                });
                if let Some(entry) = self.get(name) {
                    entry.references = 1;
                }
                Ok(())
            }
            Right::Receive(right) => {
                self.replace(name, |object| match object {
                    Object::Send(send) => Object::SendReceive(send, right),
                    other => other,
                });
                Ok(())
            }
            right => {
                later.drop_right(right);
                let entry = self.get(name).ok_or(KernError::InvalidName)?;
                if entry.references < MOST_REFERENCES {
                    entry.references += 1;
                } else if !clamp {
                    return Err(KernError::UrefsOverflow);
                }
                Ok(())
            }
        }
    }

    /// Adds a reference to the task's send right to a port, and returns its name. `None`, and
    /// nothing has changed: the task has no such right, or the most references.
    pub(super) fn add_reference(&mut self, port: &Port<M>) -> Option<Name> {
        let name = self.name_of_send_right(port)?;
        let entry =
            self.get(name).filter(|entry| entry.object.sends() && entry.references < MOST_REFERENCES)?;
        entry.references += 1;
        Some(name)
    }

    /// Whether a name has a send right to a port.
    pub(super) fn sends_to(&mut self, name: Name, port: &Arc<Port<M>>) -> bool {
        let entry = self.get(name).filter(|entry| entry.object.sends());
        entry.and_then(|entry| entry.port()).is_some_and(|named| Arc::ptr_eq(named, port))
    }

    /// Gives the task a right, and returns its name.
    ///
    /// # Errors
    /// The right is dropped. `NoSpace`: the task has as many names as it may have.
    /// `ResourceShortage`: no memory. `InvalidTask`: the space has ended.
    fn copyout(&mut self, right: Right<M>, later: &mut Later<M>) -> KernResult<Name> {
        if matches!(right, Right::Null) {
            return Ok(Name::NULL);
        }
        let Some(port) = right.living_port() else {
            later.drop_right(right);
            return Ok(Name::DEAD);
        };
        if !matches!(right, Right::SendOnce(_))
            && let Some(name) = self.name_of(port)
        {
            return self.add_right(name, right, true, later).map(|()| name);
        }
        let Some(entry) = Entry::of_right(right) else { return Ok(Name::NULL) };
        self.insert(entry).map_err(|(error, entry)| {
            entry.end(later);
            error
        })
    }
}

impl<M: Machine> Space<M> {
    /// Gives the task a send-once right under a new name, as
    /// [`copyout_right`](Self::copyout_right) does.
    ///
    /// # Errors
    /// Those of [`copyout_right`](Self::copyout_right).
    #[inline]
    pub(super) fn copyout_send_once(&self, right: SendOnceRight<M>) -> KernResult<Name> {
        if right.port().is_dead() {
            return self.copyout_right(Right::SendOnce(right));
        }
        let inserted = self.table.lock().insert(Entry::new(Object::SendOnce(right), 1));
        // The right of an entry that was not inserted ends without the lock.
        inserted.map_err(|(error, _)| error)
    }

    /// Gives the task a right under the name that it has for the port, or else a new name. Returns
    /// the name: the dead name if the port has died, the null name for the null right. Never
    /// blocks.
    ///
    /// # Errors
    /// The right is dropped. `NoSpace`: the task has as many names as it may have.
    /// `ResourceShortage`: no memory. `InvalidTask`: the space has ended.
    pub fn copyout_right(&self, right: Right<M>) -> KernResult<Name> {
        let mut later = Later::new();
        let mut table = self.table.lock();
        table.copyout(right, &mut later)
    }
}
