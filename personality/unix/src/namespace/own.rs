//! The namespaces of a thread beyond those of users, mounts and processes: what a host is called,
//! and System V objects and message queues.

use super::{IPC, NAMES, NAMESPACE_BYTES, UserNamespace, new_number};
use crate::account::{Account, Charge};
use crate::message_queue::MessageQueues;
use crate::process::PidNamespace;
use crate::sync::SpinLock;
use crate::sysv::SystemV;
use crate::{Error, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;

/// The names of the host (uts_namespaces(7)).
pub struct Names {
    number: u64,
    owner: UserNamespace,
    /// The host name and the domain name.
    names: SpinLock<(Vec<u8>, Vec<u8>)>,
    _charge: Option<Charge>,
}

impl Default for Names {
    fn default() -> Names {
        Names {
            number: NAMES,
            owner: UserNamespace::FIRST,
            names: SpinLock::new((b"macadamia".to_vec(), b"(none)".to_vec())),
            _charge: None,
        }
    }
}

impl Names {
    /// Another namespace with the same names, which belongs to `owner`. `ENOMEM`.
    pub fn copy(&self, owner: &UserNamespace, account: &Arc<Account>) -> Result<Arc<Names>> {
        let charge = account.charge_memory(NAMESPACE_BYTES).ok_or(Error::ENOMEM)?;
        let names = SpinLock::new(self.get());
        Ok(Arc::new(Names { number: new_number(), owner: owner.clone(), names, _charge: Some(charge) }))
    }

    /// The number of the namespace, which no other one has.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The namespace of users to which this one belongs.
    pub fn owner(&self) -> &UserNamespace {
        &self.owner
    }

    /// Host name and domain name.
    pub fn get(&self) -> (Vec<u8>, Vec<u8>) {
        self.names.lock().clone()
    }

    /// Sets the host name.
    pub fn set_host(&self, name: Vec<u8>) {
        let _old = core::mem::replace(&mut self.names.lock().0, name);
    }

    /// Sets the domain name.
    pub fn set_domain(&self, name: Vec<u8>) {
        let _old = core::mem::replace(&mut self.names.lock().1, name);
    }
}

/// System V objects and message queues (ipc_namespaces(7)).
pub struct ObjectNamespace {
    number: u64,
    owner: UserNamespace,
    /// The System V objects.
    pub system_v: SystemV,
    /// The POSIX message queues, once they have been used; those of the first namespace are the
    /// system's.
    queues: SpinLock<Option<MessageQueues>>,
    _charge: Option<Charge>,
}

impl Default for ObjectNamespace {
    fn default() -> ObjectNamespace {
        ObjectNamespace {
            number: IPC,
            owner: UserNamespace::FIRST,
            system_v: SystemV::default(),
            queues: SpinLock::new(None),
            _charge: None,
        }
    }
}

impl ObjectNamespace {
    /// A namespace without objects, which belongs to `owner`. `ENOMEM`.
    pub fn make(owner: &UserNamespace, account: &Arc<Account>) -> Result<Arc<ObjectNamespace>> {
        let charge = account.charge_memory(NAMESPACE_BYTES).ok_or(Error::ENOMEM)?;
        let (number, owner) = (new_number(), owner.clone());
        Ok(Arc::new(ObjectNamespace { number, owner, _charge: Some(charge), ..ObjectNamespace::default() }))
    }

    /// Whether this is the first namespace of the system.
    pub fn is_first(&self) -> bool {
        self.number == IPC
    }

    /// The message queues, which `make` makes if there are none yet.
    pub(crate) fn queues(&self, make: impl FnOnce() -> Result<MessageQueues>) -> Result<MessageQueues> {
        if let Some(queues) = &*self.queues.lock() {
            return Ok(queues.clone());
        }
        let made = make()?;
        Ok(self.queues.lock().get_or_insert(made).clone())
    }

    /// The number of the namespace, which no other one has.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The namespace of users to which this one belongs.
    pub fn owner(&self) -> &UserNamespace {
        &self.owner
    }
}

/// The namespaces of a thread that are neither in its credentials nor in its directories.
#[derive(Clone, Default)]
pub struct Namespaces {
    /// The names of the host.
    pub names: Arc<Names>,
    /// System V objects and message queues.
    pub objects: Arc<ObjectNamespace>,
    /// The namespace of processes in which the children of the thread begin.
    pub for_children: PidNamespace,
}
