//! The calls on names of rights: the interface `mach_port`.

use mach_interfaces::mach_port::Server;
use message::Memory;

use super::PortPersonality;
use super::call::{Answer, Call};
use super::error::INVALID_VALUE;
use crate::ipc::{Disposition, Name, PortRight, Right};
use crate::machine::Machine;

impl<M: Machine, P: PortPersonality<M>> Server for Call<'_, M, P> {
    async fn mach_port_names(&mut self, task: u64) -> Answer<(Memory, Memory)> {
        let names = self.space(task)?.names()?;
        let words = self.give_words(names.iter().map(|(name, _)| name.0))?;
        Ok((words, self.give_words(names.iter().map(|(_, kind)| kind.bits()))?))
    }

    async fn mach_port_type(&mut self, task: u64, name: u32) -> Answer<u32> {
        Ok(self.space(task)?.port_type(Name(name))?.bits())
    }

    async fn mach_port_rename(&mut self, task: u64, old_name: u32, new_name: u32) -> Answer {
        Ok(self.space(task)?.rename(Name(old_name), Name(new_name))?)
    }

    async fn mach_port_allocate_name(&mut self, task: u64, right: u32, name: u32) -> Answer {
        Ok(self.space(task)?.allocate_name(PortRight::from_number(right)?, Name(name))?)
    }

    async fn mach_port_allocate(&mut self, task: u64, right: u32) -> Answer<u32> {
        Ok(self.space(task)?.allocate(PortRight::from_number(right)?)?.0)
    }

    async fn mach_port_destroy(&mut self, task: u64, name: u32) -> Answer {
        Ok(self.space(task)?.destroy(Name(name))?)
    }

    async fn mach_port_deallocate(&mut self, task: u64, name: u32) -> Answer {
        Ok(self.space(task)?.deallocate(Name(name))?)
    }

    async fn mach_port_get_refs(&mut self, task: u64, name: u32, right: u32) -> Answer<u32> {
        Ok(self.space(task)?.references(Name(name), PortRight::from_number(right)?)?)
    }

    async fn mach_port_mod_refs(&mut self, task: u64, name: u32, right: u32, delta: u32) -> Answer {
        let right = PortRight::from_number(right)?;
        Ok(self.space(task)?.modify_references(Name(name), right, delta as i32)?)
    }

    async fn mach_port_set_qlimit(&mut self, task: u64, name: u32, qlimit: u32) -> Answer {
        Ok(self.space(task)?.set_queue_limit(Name(name), qlimit)?)
    }

    async fn mach_port_set_mscount(&mut self, task: u64, name: u32, mscount: u32) -> Answer {
        Ok(self.space(task)?.set_make_send_count(Name(name), mscount)?)
    }

    async fn mach_port_get_set_status(&mut self, task: u64, name: u32) -> Answer<Memory> {
        let members = self.space(task)?.set_status(Name(name))?;
        self.give_words(members.iter().map(|name| name.0))
    }

    async fn mach_port_move_member(&mut self, task: u64, member: u32, after: u32) -> Answer {
        Ok(self.space(task)?.move_member(Name(member), Name(after))?)
    }

    async fn mach_port_request_notification(
        &mut self,
        task: u64,
        name: u32,
        id: u32,
        sync: u32,
        notify: u64,
    ) -> Answer<(u64, u32)> {
        let space = self.space(task)?;
        let notify = self.right(notify);
        let previous = space.request_notification(Name(name), id as i32, sync, notify)?;
        let previous = previous.map_or(Right::Null, Right::SendOnce);
        Ok((self.give(previous), Disposition::MoveSendOnce as u32))
    }

    async fn mach_port_insert_right(&mut self, task: u64, name: u32, poly: u64, _poly_type: u32) -> Answer {
        let space = self.space(task)?;
        let right = self.right(poly);
        Ok(space.insert_right(Name(name), right)?)
    }

    async fn mach_port_extract_right(&mut self, task: u64, name: u32, msgt_name: u32) -> Answer<(u64, u32)> {
        let disposition = Disposition::from_number(msgt_name).ok_or(INVALID_VALUE)?;
        let right = self.space(task)?.extract_right(Name(name), disposition)?;
        Ok((self.give(right), disposition.received()))
    }

    async fn mach_port_get_receive_status(&mut self, task: u64, name: u32) -> Answer<[u32; 9]> {
        let status = self.space(task)?.receive_status(Name(name))?;
        Ok([
            status.set.0,
            status.sequence,
            status.make_send_count,
            status.queue_limit,
            status.messages,
            status.send_once_rights,
            u32::from(status.send_rights),
            u32::from(status.port_destroyed),
            u32::from(status.no_senders),
        ])
    }

    async fn mach_port_set_seqno(&mut self, task: u64, name: u32, seqno: u32) -> Answer {
        Ok(self.space(task)?.set_sequence(Name(name), seqno)?)
    }

    async fn mach_port_set_protected_payload(&mut self, task: u64, name: u32, payload: u64) -> Answer {
        Ok(self.space(task)?.set_protected_payload(Name(name), Some(payload))?)
    }

    async fn mach_port_clear_protected_payload(&mut self, task: u64, name: u32) -> Answer {
        Ok(self.space(task)?.set_protected_payload(Name(name), None)?)
    }

    async fn mach_port_set_ktype(
        &mut self,
        host: u64,
        task: u64,
        name: u32,
        right: u32,
        _ktype: u32,
    ) -> Answer {
        // The type is a mark for the debugger of a kernel, which this library has not. The
        // arguments are checked as if there were one.
        self.host_control(host)?;
        let right = PortRight::from_number(right)?;
        match self.space(task)?.references(Name(name), right)? {
            0 => Err(crate::KernError::InvalidRight.into()),
            _ => Ok(()),
        }
    }
}
