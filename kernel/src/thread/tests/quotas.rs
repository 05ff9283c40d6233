//! What a space's quota takes out of its owner's, and when the owner gets it back.

use x2::ThreadId;
use x2::extension::{Quota, SpaceOption};

use super::Register::*;
use super::{World, error, id};
use crate::memory::Account;
use crate::syscall::Call;
use crate::thread::ThreadRef;

/// More than the spaces of these tests use.
const QUOTA: u64 = 1 << 20;
const UNLIMITED: u64 = Quota::UNLIMITED.word();

impl World {
    /// Root sets an option of the space of `thread`. Returns the error, if there is one.
    fn set(&self, thread: ThreadRef, option: SpaceOption, value: u64) -> Option<u64> {
        let root = self.root();
        let arguments = [(Rdi, thread.id().raw()), (Rsi, option as u64), (Rdx, value), (R8, 0)];
        self.call(Call::SpaceOptions, root, &arguments);
        (root.registers.rax().get() == 0).then(|| error(root))
    }

    fn set_quota(&self, thread: ThreadRef, quota: u64) -> Option<u64> {
        self.set(thread, SpaceOption::Quota, quota)
    }

    fn set_owner(&self, thread: ThreadRef, owner: ThreadId) -> Option<u64> {
        self.set(thread, SpaceOption::Owner, owner.raw())
    }

    /// Root deletes a thread, and its space with the last.
    fn delete(&self, thread: ThreadRef) {
        let arguments = [(Rdi, thread.id().raw()), (R8, 0), (Rdx, 0), (Rsi, 0), (R9, 0)];
        self.call(Call::ThreadControl, self.root(), &arguments);
        assert_eq!(self.root().registers.rax().get(), 1, "ThreadControl fails");
    }
}

fn account(thread: ThreadRef) -> Account {
    thread.space.get().expect("a live thread").account()
}

/// Two spaces, each with its own thread, and what each uses before one of them owns the other.
struct Spaces {
    world: World,
    owner: ThreadRef,
    owned: ThreadRef,
    owners_use: u64,
    own_use: u64,
}

impl Spaces {
    fn new() -> Self {
        let world = World::new();
        let [owner, owned] = [4, 5].map(|number| world.spawn(id(number, 1), id(number, 1)));
        let [owners_use, own_use] = [owner, owned].map(|thread| account(thread).used());
        assert_eq!(world.set_owner(owned, owner.id()), None);
        Self { world, owner, owned, owners_use, own_use }
    }

    /// What is taken out of the owner's quota beyond what it uses itself.
    fn taken(&self) -> u64 {
        account(self.owner).used() - self.owners_use
    }
}

/// Rules: EXT 3.2, EXT 3.6.
#[test]
fn a_quota_is_taken_out_of_the_owners_and_comes_back() {
    let spaces = Spaces::new();
    let (world, owned) = (&spaces.world, spaces.owned);
    assert_eq!(spaces.taken(), spaces.own_use, "without a quota its use is the owner's");
    for quota in [QUOTA, 3 * QUOTA, 2 * QUOTA, 2 * QUOTA, spaces.own_use] {
        assert_eq!(world.set_quota(owned, quota), None);
        assert_eq!((spaces.taken(), account(owned).limit().word()), (quota, quota));
        assert_eq!(account(owned).used(), spaces.own_use);
    }
    assert_eq!(world.set_quota(owned, spaces.own_use - 1), Some(5), "it uses more");
    assert_eq!(spaces.taken(), spaces.own_use);
    for _ in 0..2 {
        assert_eq!(world.set_quota(owned, UNLIMITED), None);
        assert_eq!((spaces.taken(), account(owned).limit()), (spaces.own_use, Quota::UNLIMITED));
    }
    assert_eq!(world.set_quota(owned, QUOTA), None);
    assert_eq!(spaces.taken(), QUOTA, "and again");
}

/// Rules: EXT 3.2, EXT 3.6.
#[test]
fn a_quota_that_the_owner_has_not_left_changes_nothing() {
    let spaces = Spaces::new();
    let (world, owner, owned) = (&spaces.world, spaces.owner, spaces.owned);
    let limit = spaces.owners_use + 2 * QUOTA;
    assert_eq!(world.set_quota(owner, limit), None);
    let too_much = 2 * QUOTA + 1;
    assert_eq!(world.set_quota(owned, too_much), Some(8));
    assert_eq!((spaces.taken(), account(owned).limit()), (spaces.own_use, Quota::UNLIMITED));
    assert_eq!(account(owned).upper(), Some(account(owner)));
    assert_eq!(world.set_quota(owned, QUOTA), None);
    assert_eq!(world.set_quota(owned, too_much), Some(8));
    assert_eq!((spaces.taken(), account(owned).limit().word()), (QUOTA, QUOTA));
    assert_eq!(world.set_quota(owned, 2 * QUOTA), None, "all that is left");
    assert_eq!(account(owner).used(), limit);
}

/// Rules: EXT 3.2, EXT 3.6.
#[test]
fn an_owner_gets_a_quota_back_when_the_space_leaves_it() {
    for (quota, deleted) in [(QUOTA, false), (QUOTA, true), (UNLIMITED, false), (UNLIMITED, true)] {
        let spaces = Spaces::new();
        let (world, owned) = (&spaces.world, spaces.owned);
        assert_eq!(world.set_quota(owned, quota), None);
        if deleted {
            world.delete(owned);
        } else {
            assert_eq!(world.set_owner(owned, ThreadId::NIL), None);
            assert_eq!((account(owned).limit().word(), account(owned).upper()), (quota, None));
        }
        assert_eq!(spaces.taken(), 0);
    }
}

/// The account of an owner that ends goes when nothing is charged to it any more.
/// Rules: EXT 3.2, EXT 3.6.
#[test]
fn an_owner_that_ends_leaves_no_account() {
    for quota in [QUOTA, UNLIMITED] {
        let spaces = Spaces::new();
        let (world, owner, owned) = (&spaces.world, spaces.owner, spaces.owned);
        let accounts = Account::all().count();
        assert_eq!(world.set_quota(owned, quota), None);
        world.delete(owner);
        assert_eq!(Account::all().count(), accounts - 1);
        assert_eq!((account(owned).limit().word(), account(owned).upper()), (quota, None));
        assert_eq!(account(owned).used(), spaces.own_use);
        world.delete(owned);
        assert_eq!(Account::all().count(), accounts - 2);
    }
}

/// Root's memory is the kernel's own: a quota is taken out of that, and no space shares it.
/// Rules: EXT 3.2, EXT 3.6.
#[test]
fn a_quota_out_of_the_kernels_own_account_comes_back() {
    let world = World::new();
    let owned = world.spawn(id(4, 1), id(4, 1));
    let before = Account::KERNEL.used();
    assert_eq!(world.set_owner(owned, world.root().id()), None);
    assert_eq!((account(owned).upper(), Account::KERNEL.used()), (None, before));
    for (quota, taken) in [(QUOTA, QUOTA), (2 * QUOTA, 2 * QUOTA), (UNLIMITED, 0), (QUOTA, QUOTA)] {
        assert_eq!(world.set_quota(owned, quota), None);
        assert_eq!(Account::KERNEL.used(), before + taken);
    }
    assert_eq!(world.set_owner(owned, ThreadId::NIL), None);
    assert_eq!(Account::KERNEL.used(), before);
}
