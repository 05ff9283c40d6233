//! Arrays of a size that varies.

use alloc::vec::Vec;
use core::ops::Deref;

/// An array of at most `N` elements. The interfaces allow far more elements than most messages
/// have, so the array is allocated, and has room only for the elements that there are.
#[derive(Debug, PartialEq, Eq)]
pub struct Array<T, const N: usize>(Vec<T>);

impl<T: Copy, const N: usize> Array<T, N> {
    /// Copies the elements of a slice; none if there are more than `N`, or if there is no memory.
    pub fn new(slice: &[T]) -> Option<Self> {
        let mut elements = Vec::new();
        elements.try_reserve_exact(slice.len()).ok()?;
        elements.extend_from_slice(slice);
        Self::of(elements)
    }

    /// An array of `count` elements, each computed from its index; none if there are more than `N`,
    /// or if there is no memory.
    pub fn from_fn(count: usize, element: impl Fn(usize) -> T) -> Option<Self> {
        if count > N {
            return None;
        }
        let mut elements = Vec::new();
        elements.try_reserve_exact(count).ok()?;
        elements.extend((0..count).map(element));
        Some(Self(elements))
    }

    /// An array of these elements; none if there are more than `N`.
    pub fn of(elements: Vec<T>) -> Option<Self> {
        (elements.len() <= N).then_some(Self(elements))
    }
}

impl<T, const N: usize> Deref for Array<T, N> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_has_at_most_as_many_elements_as_its_type_says() {
        assert_eq!(Array::<u32, 2>::new(&[7, 8]).as_deref(), Some(&[7, 8][..]));
        assert_eq!(Array::<u32, 2>::new(&[7, 8, 9]), None);
        assert_eq!(Array::<u32, 2>::of(Vec::from([7, 8, 9])), None);
        assert_eq!(Array::<u32, 2>::from_fn(2, |at| at as u32 + 7).as_deref(), Some(&[7, 8][..]));
        assert_eq!(Array::<u32, 2>::from_fn(3, |_| 0), None);
    }
}
