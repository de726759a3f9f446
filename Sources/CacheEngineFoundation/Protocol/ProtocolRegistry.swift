#if canImport(FoundationNetworking)
    internal import CacheEngine
    internal import Foundation
    internal import FoundationNetworking
    internal import Synchronization

    /// The subclasses of `CachingURLProtocol` and their caches.
    ///
    /// URLSession creates a protocol from its class alone, so each registration has a class of its
    /// own: `NumberedProtocol` with a type that stands for the number of the registration.
    final class ProtocolRegistry: Sendable {
        static let shared = ProtocolRegistry()

        struct Registered {
            let cache: HTTPCache
            let storing: CachingURLProtocol.Storing
        }

        private struct Registration {
            /// Weak: the configuration and its sessions hold the façade, and with it the cache.
            weak var facade: EngineURLCache?
            let storing: CachingURLProtocol.Storing
        }

        private struct State {
            var count: UInt = 0
            var registrations: [ObjectIdentifier: Registration] = [:]
        }

        private let state = Mutex(State())

        /// Returns a new class whose instances load through the cache of `facade`.
        func register(
            _ facade: EngineURLCache,
            _ storing: CachingURLProtocol.Storing
        ) -> CachingURLProtocol.Type {
            state.withLock { state in
                state.count += 1
                let type = Self.type(numbered: state.count)
                // The class of a released configuration is never used again, so its entry may go.
                state.registrations = state.registrations.filter { $0.value.facade != nil }
                state.registrations[ObjectIdentifier(type)] = Registration(
                    facade: facade,
                    storing: storing
                )
                return type
            }
        }

        /// Whether the class was made by `register`.
        func knows(_ type: CachingURLProtocol.Type) -> Bool { type is any Numbered.Type }

        /// The cache of the class; `nil` if its configuration no longer holds it.
        func registered(for type: CachingURLProtocol.Type) -> Registered? {
            state.withLock { state in
                guard let known = state.registrations[ObjectIdentifier(type)],
                    let facade = known.facade
                else { return nil }
                return Registered(cache: facade.cache, storing: known.storing)
            }
        }

        /// The class of a number, built from its binary digits; at most 64 types are nested.
        private static func type(numbered number: UInt) -> CachingURLProtocol.Type {
            var digits: any Digits.Type = NoDigits.self
            var rest = number
            while rest > 0 {
                digits = append(isOne: rest & 1 == 1, to: digits)
                rest >>= 1
            }
            return protocolType(digits)
        }

        private static func append(isOne: Bool, to digits: any Digits.Type) -> any Digits.Type {
            func one<Rest: Digits>(_: Rest.Type) -> any Digits.Type { One<Rest>.self }
            func zero<Rest: Digits>(_: Rest.Type) -> any Digits.Type { Zero<Rest>.self }
            return isOne ? one(digits) : zero(digits)
        }

        private static func protocolType(_ digits: any Digits.Type) -> CachingURLProtocol.Type {
            func type<Number: Digits>(_: Number.Type) -> CachingURLProtocol.Type {
                NumberedProtocol<Number>.self
            }
            return type(digits)
        }
    }

    /// A type that stands for a number.
    private protocol Digits {}
    private enum NoDigits: Digits {}
    private enum Zero<Rest: Digits>: Digits {}
    private enum One<Rest: Digits>: Digits {}

    private protocol Numbered {}

    /// The class of one registration.
    private final class NumberedProtocol<Number: Digits>: CachingURLProtocol, Numbered {}
#endif
