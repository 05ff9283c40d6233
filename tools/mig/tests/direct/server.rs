//! A server for `everything.defs`.

use crate::CALLER;
use crate::everything::Server;
use direct::x2::{MapItem, ThreadId};
use direct::{Array, Status};

/// A server that records the arguments of `hint`, which has no reply, for the test to check.
#[derive(Default)]
pub(crate) struct Everything {
    pub(crate) hints: Vec<(u32, Vec<u8>)>,
}

impl Server for Everything {
    fn numbers(
        &mut self,
        caller: ThreadId,
        a: u8,
        b: u16,
        c: u32,
        d: u64,
        count: u32,
    ) -> Result<(u64, u32), Status> {
        assert_eq!(caller, CALLER);
        if a == 13 {
            return Err(Status(-13));
        }
        if a == 14 {
            return Err(Status::NO_REPLY);
        }
        let sum = u64::from(a) + u64::from(b) + u64::from(c);
        Ok((sum.wrapping_add(d), count.wrapping_add(1)))
    }

    fn nothing(&mut self, _: ThreadId) -> Result<(), Status> {
        Ok(())
    }

    fn hint(&mut self, _: ThreadId, kind: u32, text: &[u8]) {
        self.hints.push((kind, text.to_vec()));
    }

    fn small(
        &mut self,
        _: ThreadId,
        text: &[u8],
        shorts: &[u16],
        five: &[u32; 5],
        name: &[u8],
        pair: &[u64; 2],
    ) -> Result<([u64; 2], Array<u16, 7>, Array<u8, 40>), Status> {
        if name != b"name" {
            return Err(Status(1));
        }
        let reversed: Vec<u16> = shorts.iter().rev().copied().collect();
        let sum = five.iter().map(|&number| u64::from(number)).sum();
        let (shorts, text) = (Array::new(&reversed), Array::new(&text.to_ascii_uppercase()));
        Ok(([sum, pair[0]], shorts.ok_or(Status(2))?, text.ok_or(Status(2))?))
    }

    fn bulk(
        &mut self,
        _: ThreadId,
        memory: &[u8],
        large: &[u8],
        words: &[u8],
        number: u32,
        copy: &mut [u8],
        again: &mut [u8],
    ) -> Result<(usize, u64, usize), Status> {
        let room = copy.get_mut(..memory.len()).ok_or(Status::ARRAY_TOO_LARGE)?;
        room.copy_from_slice(memory);
        let room = again.get_mut(..large.len()).ok_or(Status::ARRAY_TOO_LARGE)?;
        room.copy_from_slice(large);
        let words = words.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap()));
        Ok((memory.len(), words.fold(u64::from(number), u64::wrapping_add), large.len()))
    }

    fn rights(
        &mut self,
        _: ThreadId,
        port: u64,
        kind: u32,
        page: MapItem,
    ) -> Result<(MapItem, u64, u32), Status> {
        Ok((page, port.wrapping_add(1), kind.wrapping_add(1)))
    }

    fn change(&mut self, _: ThreadId, data: &[u8], room: &mut [u8]) -> Result<usize, Status> {
        let changed: Vec<u8> = data.iter().rev().copied().chain(*b"!").collect();
        room.get_mut(..changed.len()).ok_or(Status::ARRAY_TOO_LARGE)?.copy_from_slice(&changed);
        Ok(changed.len())
    }
}
