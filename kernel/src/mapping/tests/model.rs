//! A plain model of the mapping rules: for every page of every space the memory, the rights, the
//! page it was derived from, and what has been done to it since its holder last asked. Nothing in
//! it knows page sizes.
use x2::Rights;

/// A mapping: an index into [`Model::mappings`].
type Id = usize;

#[derive(Clone, Debug)]
struct Mapping {
    space: usize,
    page: usize,
    frame: usize,
    rights: Rights,
    /// `None`: derived from sigma0.
    parent: Option<Id>,
    children: Vec<Id>,
    status: Rights,
}

/// Spaces 1.. of `pages` pages each; space 0 is sigma0 and holds as many frames.
pub(super) struct Model {
    mappings: Vec<Option<Mapping>>,
    free: Vec<Id>,
    spaces: Vec<Vec<Option<Id>>>,
}

impl Model {
    pub(super) fn new(spaces: usize, pages: usize) -> Self {
        Self { mappings: Vec::new(), free: Vec::new(), spaces: vec![vec![None; pages]; spaces + 1] }
    }

    fn get(&self, id: Id) -> &Mapping {
        self.mappings[id].as_ref().expect("a live mapping")
    }

    fn get_mut(&mut self, id: Id) -> &mut Mapping {
        self.mappings[id].as_mut().expect("a live mapping")
    }

    /// Frame and rights of a page.
    pub(super) fn at(&self, space: usize, page: usize) -> Option<(usize, Rights)> {
        self.spaces[space][page].map(|id| (self.get(id).frame, self.get(id).rights))
    }

    /// The rights that are granted, by rule 7.34. Reading cannot be forbidden.
    fn granted(wanted: Rights, held: Rights) -> Rights {
        let rights = wanted.and(held);
        if rights.is_none() { rights } else { rights.or(Rights::READ) }
    }

    /// One page of a map or grant item. Returns the rights granted.
    pub(super) fn map(
        &mut self,
        from: usize,
        source: usize,
        to: usize,
        target: usize,
        wanted: Rights,
        grant: bool,
    ) -> Rights {
        let grant = grant && from != 0;
        let parent = if from == 0 { None } else { self.spaces[from][source] };
        if from != 0 && parent.is_none() {
            return Rights::NONE;
        }
        let (frame, held) =
            parent.map_or((source, Rights::ALL), |id| (self.get(id).frame, self.get(id).rights));
        let rights = Self::granted(wanted, held);
        if rights.is_none() {
            return rights;
        }
        if let Some(there) = self.spaces[to][target] {
            let same = self.get(there).frame == frame && self.get(there).parent == parent && !grant;
            if same {
                let mapping = self.get_mut(there);
                mapping.rights = mapping.rights.or(rights);
                return rights;
            }
            self.remove(there);
            if parent.is_some() && self.spaces[from][source] != parent {
                return Rights::NONE;
            }
        }
        if grant {
            let id = parent.expect("not sigma0");
            self.spaces[from][source] = None;
            self.spaces[to][target] = Some(id);
            let mapping = self.get_mut(id);
            (mapping.space, mapping.page, mapping.rights) = (to, target, rights);
            return rights;
        }
        let mapping = Mapping {
            space: to,
            page: target,
            frame,
            rights,
            parent,
            children: Vec::new(),
            status: Rights::NONE,
        };
        let id = self.free.pop().unwrap_or_else(|| {
            self.mappings.push(None);
            self.mappings.len() - 1
        });
        self.mappings[id] = Some(mapping);
        self.spaces[to][target] = Some(id);
        if let Some(parent) = parent {
            self.get_mut(parent).children.push(id);
        }
        rights
    }

    /// Removes a mapping and everything derived from it.
    fn remove(&mut self, id: Id) {
        if let Some(parent) = self.get(id).parent {
            self.get_mut(parent).children.retain(|&child| child != id);
        }
        let mut to_remove = vec![id];
        while let Some(id) = to_remove.pop() {
            let mapping = self.mappings[id].take().expect("a live mapping");
            self.spaces[mapping.space][mapping.page] = None;
            self.free.push(id);
            to_remove.extend(mapping.children);
        }
    }

    fn revoke(&mut self, id: Id, revoke: Rights) {
        if revoke.contains(Rights::READ) {
            self.remove(id);
            return;
        }
        let mut open = vec![id];
        while let Some(id) = open.pop() {
            let mapping = self.get_mut(id);
            mapping.rights = mapping.rights.without(revoke);
            open.extend(mapping.children.iter());
        }
    }

    /// One page of an Unmap by `space`. Returns the status.
    pub(super) fn unmap(&mut self, space: usize, page: usize, revoke: Rights, flush: bool) -> Rights {
        if space == 0 {
            let derived: Vec<Id> = (0..self.mappings.len())
                .filter(|&id| {
                    self.mappings[id].as_ref().is_some_and(|m| m.parent.is_none() && m.frame == page)
                })
                .collect();
            derived.into_iter().for_each(|id| self.revoke(id, revoke));
            return Rights::NONE;
        }
        let Some(id) = self.spaces[space][page] else { return Rights::NONE };
        let mapping = self.get_mut(id);
        let mut status = core::mem::take(&mut mapping.status);
        if status.contains(Rights::READ) && mapping.rights.contains(Rights::EXECUTE) {
            status = status.or(Rights::EXECUTE);
        }
        if flush {
            self.revoke(id, revoke);
        } else {
            for child in self.get(id).children.clone() {
                self.revoke(child, revoke);
            }
        }
        status
    }

    /// One page of a MapControl map. Returns whether there is a page of the owner's now.
    pub(super) fn replace(
        &mut self,
        owner: usize,
        source: usize,
        to: usize,
        target: usize,
        wanted: Rights,
    ) -> bool {
        let parent = if owner == 0 { None } else { self.spaces[owner][source] };
        let held = match parent {
            Some(id) => self.get(id).rights,
            None if owner == 0 => Rights::ALL,
            None => Rights::NONE,
        };
        let rights = Self::granted(wanted, held);
        if rights.is_none() {
            if let Some(there) = self.spaces[to][target] {
                self.remove(there);
            }
            return false;
        }
        if let Some(there) = self.spaces[to][target] {
            let frame = parent.map_or(source, |id| self.get(id).frame);
            if self.get(there).frame == frame && self.get(there).parent == parent {
                let extra = self.get(there).rights.without(rights);
                self.revoke(there, extra);
            }
        }
        !self.map(owner, source, to, target, rights, false).is_none()
    }

    /// One page of a MapControl query, protect or unmap. Returns the page's rights and status from
    /// before.
    pub(super) fn control(
        &mut self,
        space: usize,
        page: usize,
        revoke: Rights,
        forget: Rights,
    ) -> (Rights, Rights) {
        let Some(id) = self.spaces[space][page] else { return (Rights::NONE, Rights::NONE) };
        let mapping = self.get_mut(id);
        let before = (mapping.rights, mapping.status);
        mapping.status = mapping.status.without(forget);
        self.revoke(id, revoke);
        before
    }

    /// An access by a user of `space`. Returns the frame, or `None` for a fault.
    pub(super) fn touch(&mut self, space: usize, page: usize, right: Rights) -> Option<usize> {
        let id = self.spaces[space][page]?;
        if !self.get(id).rights.contains(right) {
            return None;
        }
        let frame = self.get(id).frame;
        let status = if right.contains(Rights::WRITE) { Rights::READ_WRITE } else { Rights::READ };
        let mut next = Some(id);
        while let Some(id) = next {
            let mapping = self.get_mut(id);
            mapping.status = mapping.status.or(status);
            next = mapping.parent;
        }
        Some(frame)
    }

    /// The space is destroyed.
    pub(super) fn clear(&mut self, space: usize) {
        for page in 0..self.spaces[space].len() {
            if let Some(id) = self.spaces[space][page] {
                self.remove(id);
            }
        }
    }
}
