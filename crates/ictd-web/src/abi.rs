//! How a page hands bytes over and gets them back.
//!
//! `reserve(length)` gives the address of as many bytes, for the page to fill; 0 where there is no memory for them.
//! `call(request, request_length, payload, payload_length)` takes both buffers back by their addresses, frees everything
//! reserved, and gives the address of the answer: its length as four bytes, least first, then JSON; valid until the next
//! call. No slice is ever made of an address: buffers stay vectors in the engine's keeping.

use std::cell::RefCell;

use crate::Engine;

thread_local! {
    static RESERVED: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
    static ANSWER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static ENGINE: RefCell<Engine> = RefCell::new(Engine::default());
}

#[allow(unsafe_code, reason = "the page calls it by name, and no other function here has that name")]
#[unsafe(no_mangle)]
extern "C" fn reserve(length: usize) -> usize {
    let mut buffer = Vec::new();
    if buffer.try_reserve_exact(length).is_err() {
        return 0;
    }
    buffer.resize(length, 0);
    let address = buffer.as_mut_ptr().expose_provenance();
    RESERVED.with_borrow_mut(|reserved| reserved.push(buffer));
    address
}

#[allow(unsafe_code, reason = "the page calls it by name, and no other function here has that name")]
#[unsafe(no_mangle)]
extern "C" fn call(request: usize, request_length: usize, payload: usize, payload_length: usize) -> usize {
    let mut reserved = RESERVED.take();
    let mut taken = |address: usize, length: usize| {
        let found = reserved.iter().position(|buffer| buffer.as_ptr().addr() == address);
        let mut buffer = found.map_or_else(Vec::new, |k| reserved.swap_remove(k));
        buffer.truncate(length);
        buffer
    };
    let (request, payload) = (taken(request, request_length), taken(payload, payload_length));
    let json = ENGINE.with_borrow_mut(|engine| engine.answer(&request, &payload));
    let mut answer = u32::try_from(json.len()).unwrap_or(u32::MAX).to_le_bytes().to_vec();
    answer.extend(json);
    let address = answer.as_ptr().expose_provenance();
    ANSWER.set(answer);
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handed(bytes: &[u8]) -> usize {
        let address = reserve(bytes.len());
        RESERVED.with_borrow_mut(|reserved| {
            // What a page does by writing to the module's memory.
            if let Some(buffer) = reserved.last_mut() {
                buffer.copy_from_slice(bytes);
            }
        });
        address
    }

    fn answer() -> String {
        ANSWER.with_borrow(|answer| {
            let (length, json) = answer.split_at(4);
            assert_eq!(u32::from_le_bytes(length.try_into().unwrap()) as usize, json.len());
            String::from_utf8(json.to_vec()).unwrap()
        })
    }

    #[test]
    fn bytes_go_in_and_json_comes_out() {
        let request = br#"{"call": "about"}"#;
        let address = handed(request);
        assert!(address != 0 && call(address, request.len(), 0, 0) != 0);
        assert!(answer().starts_with(r#"{"value":{"version":"#), "{}", answer());
        assert!(RESERVED.with_borrow(Vec::is_empty));
    }

    #[test]
    fn addresses_that_were_not_reserved_are_empty_requests() {
        call(12345, 1 << 30, 99, 7);
        assert!(answer().starts_with(r#"{"error":"#));
        // More than there can be.
        assert_eq!(reserve(usize::MAX), 0);
    }
}
