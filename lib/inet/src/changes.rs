//! What changes of interfaces, addresses, routes and neighbours the caller of the stack is told.
//!
//! Nothing is noted unless the caller asks for it. A caller that does not take the changes misses
//! some: it is told that, and that it has to ask for what there is now.

use alloc::collections::VecDeque;

use crate::net::Net;
use crate::types::*;

/// The most changes that wait to be taken.
pub(crate) const MOST: usize = 4096;

/// The changes that have not been taken yet.
#[derive(Default)]
pub(crate) struct Changes {
    pub(crate) noted: bool,
    queue: VecDeque<Change>,
}

impl Net {
    pub(crate) fn note_changes(&mut self, noted: bool) {
        self.changes.noted = noted;
        if !noted {
            self.changes.queue.clear();
        }
    }

    pub(crate) fn has_changes(&self) -> bool {
        !self.changes.queue.is_empty()
    }

    pub(crate) fn next_change(&mut self) -> Option<Change> {
        self.changes.queue.pop_front()
    }

    /// Notes that something is new or different, or has gone.
    fn note(&mut self, gone: bool, subject: Subject) {
        if self.changes.queue.len() == MOST {
            self.changes.queue.clear();
            self.changes.queue.push_back(Change { gone: false, subject: Subject::Missed });
        }
        self.changes.queue.push_back(Change { gone, subject });
    }

    /// Notes an interface that has changed.
    pub(crate) fn note_link(&mut self, interface: InterfaceIndex) {
        if self.changes.noted
            && let Some(link) = self.link(interface)
        {
            let subject = Subject::Interface(link.public.clone());
            self.note(false, subject);
        }
    }

    /// Notes that an interface has been removed.
    pub(crate) fn note_link_gone(&mut self, interface: Interface) {
        if self.changes.noted {
            self.note(true, Subject::Interface(interface));
        }
    }

    /// Notes an address that is new or different, or has gone.
    pub(crate) fn note_address(&mut self, address: Address, gone: bool) {
        if self.changes.noted {
            let link = self.link(address.interface);
            let name = link.map_or_else(Default::default, |link| link.public.name.clone());
            self.note(gone, Subject::Address(address, name));
        }
    }

    /// Notes a route that is new, or has gone.
    pub(crate) fn note_route(&mut self, route: Route, gone: bool) {
        if self.changes.noted {
            self.note(gone, Subject::Route(route));
        }
    }

    /// Notes a neighbour that is new or different, or has gone. That it is being asked is not said.
    pub(crate) fn note_neighbour(&mut self, neighbour: Neighbour, gone: bool) {
        let asked = matches!(neighbour.state, NeighbourState::Incomplete | NeighbourState::Probe);
        if self.changes.noted && (gone || !asked) {
            self.note(gone, Subject::Neighbour(neighbour));
        }
    }

    /// Removes the routes that are not to be kept.
    pub(crate) fn retain_routes(&mut self, keep: impl Fn(&Route) -> bool) {
        if self.changes.noted {
            let gone: alloc::vec::Vec<Route> =
                self.routes.iter().filter(|route| !keep(route)).copied().collect();
            for route in gone {
                self.note(true, Subject::Route(route));
            }
        }
        self.routes.retain(keep);
    }

    /// Removes the addresses that are not to be kept, without their routes.
    pub(crate) fn retain_addresses(&mut self, keep: impl Fn(&Address) -> bool) {
        if self.changes.noted {
            let gone: alloc::vec::Vec<Address> =
                self.addresses.iter().filter(|address| !keep(address)).copied().collect();
            for address in gone {
                self.note_address(address, true);
            }
        }
        self.addresses.retain(keep);
    }
}
