//! Which processors are to be started in addition to the first one.
use crate::kip::MAX_PROCESSORS;

/// Local APIC ids from here on cannot be read from CPUID leaf 1, nor be the destination of a line.
const WIDE_ID: u32 = 255;

/// The processors to start, each once: a second start-up message would reset a processor that has
/// come already.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Candidates {
    ids: [u32; MAX_PROCESSORS],
    count: usize,
    /// How many processors there is no room for.
    pub left_out: usize,
}

impl Candidates {
    /// Chooses, of the processors with the local APIC ids `listed`, those that the processor `own`
    /// can start: at most `wanted`, counting `own`. The same id may be there several times:
    /// firmware lists a processor as one of xAPIC and as one of x2APIC. `skip` is told of ids that
    /// are too large.
    pub fn choose(own: u32, listed: &[u32], wanted: usize, mut skip: impl FnMut(u32)) -> Self {
        let mut chosen = Self { ids: [0; MAX_PROCESSORS], count: 0, left_out: 0 };
        let is_first = |index: usize| !listed[..index].contains(&listed[index]);
        let others = (0..listed.len()).filter(|&index| is_first(index)).map(|index| listed[index]);
        for id in others.filter(|&id| id != own) {
            if id >= WIDE_ID {
                skip(id);
            } else if chosen.count + 1 < wanted.min(MAX_PROCESSORS) {
                chosen.ids[chosen.count] = id;
                chosen.count += 1;
            } else {
                chosen.left_out += 1;
            }
        }
        chosen
    }

    /// Their local APIC ids, in the order of the list.
    pub fn ids(&self) -> &[u32] {
        &self.ids[..self.count]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(own: u32, listed: &[u32], wanted: usize) -> (Vec<u32>, usize, Vec<u32>) {
        let mut skipped = vec![];
        let chosen = Candidates::choose(own, listed, wanted, |id| skipped.push(id));
        (chosen.ids().to_vec(), chosen.left_out, skipped)
    }

    #[test]
    fn all_but_the_first_are_started() {
        assert_eq!(choose(4, &[0, 4, 8], 64), (vec![0, 8], 0, vec![]));
        assert_eq!(choose(4, &[], 64), (vec![], 0, vec![]));
    }

    #[test]
    fn no_processor_is_started_twice() {
        assert_eq!(choose(0, &[0, 1, 2, 0, 1, 2, 2], 64), (vec![1, 2], 0, vec![]));
        assert_eq!(choose(0, &[0, 1, 1, 2, 2], 2), (vec![1], 1, vec![]));
    }

    #[test]
    fn as_many_as_are_wanted() {
        assert_eq!(choose(0, &[0, 1, 2, 3], 3), (vec![1, 2], 1, vec![]));
        assert_eq!(choose(0, &[0, 1, 2, 3], 1), (vec![], 3, vec![]));
        let all: Vec<u32> = (0..100).collect();
        let (chosen, left_out, _) = choose(0, &all, usize::MAX);
        assert_eq!((chosen.len(), left_out), (MAX_PROCESSORS - 1, 100 - MAX_PROCESSORS));
    }

    #[test]
    fn ids_that_are_too_large_take_no_place() {
        assert_eq!(choose(0, &[0, 300, 255, 300, 1, 254], 3), (vec![1, 254], 0, vec![300, 255]));
    }
}
