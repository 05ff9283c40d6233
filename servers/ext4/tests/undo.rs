//! The map of the vendored crate whose changes can be taken back, compared with one that is copied.

extern crate alloc;

#[path = "../../../vendor/rsext4/src/cache/undo.rs"]
mod undo;

use proptest::prelude::*;
use std::collections::BTreeMap;
use undo::UndoMap;

#[derive(Clone, Debug)]
enum Step {
    Insert(u8, u16),
    Remove(u8),
    Change(u8, u16),
    Clear,
    Begin,
    Keep,
    Restore,
}

fn steps() -> impl Strategy<Value = Step> {
    let key = || 0..8_u8;
    prop_oneof![
        4 => (key(), any::<u16>()).prop_map(|(key, value)| Step::Insert(key, value)),
        2 => key().prop_map(Step::Remove),
        3 => (key(), any::<u16>()).prop_map(|(key, value)| Step::Change(key, value)),
        1 => Just(Step::Clear),
        3 => Just(Step::Begin),
        2 => Just(Step::Keep),
        2 => Just(Step::Restore),
    ]
}

proptest! {
    #[test]
    fn changes_are_kept_or_taken_back(steps in prop::collection::vec(steps(), 1..80)) {
        let mut map = UndoMap::new();
        let (mut model, mut copies) = (BTreeMap::new(), Vec::new());
        for step in steps {
            match step {
                Step::Insert(key, value) => {
                    prop_assert_eq!(map.insert(key, value), model.insert(key, value));
                }
                Step::Remove(key) => prop_assert_eq!(map.remove(&key), model.remove(&key)),
                Step::Change(key, value) => {
                    prop_assert_eq!(map.peek_mut(&key).copied(), model.get(&key).copied());
                    let (one, other) = (map.get_mut(&key), model.get_mut(&key));
                    prop_assert_eq!(&one, &other);
                    one.into_iter().chain(other).for_each(|it| *it = value);
                }
                Step::Clear => {
                    map.clear();
                    model.clear();
                }
                Step::Begin => {
                    map.begin();
                    copies.push(model.clone());
                }
                Step::Keep if copies.pop().is_some() => map.keep(),
                Step::Restore => {
                    if let Some(copy) = copies.pop() {
                        map.restore();
                        model = copy;
                    }
                }
                Step::Keep => {}
            }
            prop_assert_eq!(&*map, &model);
        }
    }
}
