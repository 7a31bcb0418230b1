import BusKit
import FeedFetching
import OwnerKit
import PodcastModel
import WireMessages

extension FeedsMachine {
    /// Returns the credentials for fetching a podcast’s feed: the stored ones, and those of this command.
    func credentials(of fetch: Fetch, _ podcast: PodcastID?) -> [WebOrigin: WebCredentials] {
        var credentials = podcast.map { secrets.credentials(of: $0.text) } ?? [:]
        for origin in Self.origins(of: fetch) { credentials[origin] = fetch.credentials }
        return credentials
    }

    private static func origins(of fetch: Fetch) -> [WebOrigin] {
        fetch.credentials == nil ? [] : origins(of: fetch.address)
    }

    /// Returns the origins to which a command’s credentials are sent: that of its address and, for http, the same one
    /// with TLS, to which such an address usually redirects.
    static func origins(of address: WebAddress) -> [WebOrigin] {
        guard let origin = address.origin else { return [] }
        return [origin, origin.encrypted].compactMap(\.self)
    }

    /// Returns the warnings for the client that sent a user and password.
    static func warnings(about fetch: Fetch) -> [String] {
        guard fetch.credentials != nil else { return [] }
        return [FeedWarning.unencryptedPassword(to: fetch.address)].compactMap { $0?.description }
    }

    /// Returns the secrets to store for an ended fetch; nil if they are stored already.
    ///
    /// They are written before anything that needs them is committed: a crash in between leaves an unused password.
    func secretsToSave(_ fetch: Fetch, _ outcome: FetchOutcome) -> FeedSecrets? {
        guard let id = podcast(of: fetch, outcome) else { return nil }
        var next = secrets
        if let given = fetch.credentials {
            for origin in Self.origins(of: fetch) { next.set(given, for: id.text, at: origin, isGiven: true) }
        }
        switch outcome {
        case .feed(let feed):
            for (origin, found) in feed.secrets { next.set(found, for: id.text, at: origin, isGiven: false) }
        case .unchanged(let moved?):
            if let origin = moved.origin, let found = moved.webCredentials {
                next.set(found, for: id.text, at: origin, isGiven: false)
            }
        case .unchanged, .failed: break
        }
        return next != secrets || (secretsAreUnsaved && fetch.credentials != nil) ? next : nil
    }

    /// Returns the podcast whose secrets a fetch changes; nil if it changes none.
    private func podcast(of fetch: Fetch, _ outcome: FetchOutcome) -> PodcastID? {
        if case .failed = outcome, !fetch.waiters.contains(where: \.keepsFailing) { return nil }
        switch fetch.key {
        case .check: return nil
        // No secrets are stored for a podcast that was forgotten meanwhile.
        case .podcast(let id), .signIn(let id, _), .move(let id, _): return library.current[id] == nil ? nil : id
        case .new:
            guard case .feed(let feed) = outcome else {
                guard !isSubscribed(fetch.address) else { return nil }
                return library.current.podcast(at: fetch.address)?.0 ?? .feed(at: fetch.address)
            }
            return library.current.podcast(at: feed.address)?.0 ?? feed.podcast
        }
    }

    /// Requests that the secrets are written, as save number `lastSave`.
    mutating func save(_ next: FeedSecrets, _ effects: inout [Effect]) {
        secrets = next
        secretsAreUnsaved = true
        lastSave += 1
        effects.append(.perform(.saveSecrets(lastSave, next)))
    }

    mutating func secretsSaved(_ number: UInt64, _ failure: Failure?, now: Moment, _ effects: inout [Effect]) {
        if let failure {
            secretsAreUnsaved = true
            effects.append(.log(.error, "the passwords can’t be saved: \(failure.message)"))
            effects.append(.timer(.saveSecrets, at: now.monotonic.advanced(by: Self.saveBackoff.wait())))
        } else {
            // An older save lacks the changes of a later one, which has its own outcome.
            if number == lastSave {
                secretsAreUnsaved = false
                effects.append(.timer(.saveSecrets, at: nil))
            }
            if let first = migrationSave, number >= first {
                migrationSave = nil
                effects.append(.perform(.dropMovedSecrets))
            }
        }
        if let command = commandsAwaitingSave.removeValue(forKey: number) {
            if let failure {
                effects.append(.reply(command.id, .failure(failure)))
            } else {
                handle(command, now: now, &effects)
            }
        }
        guard let (waiting, outcome) = fetchesAwaitingSave.removeValue(forKey: number), let fetch = fetches[waiting]
        else { return }
        conclude(fetch, failure.map { .failed($0, retryAfter: nil) } ?? outcome, now: now, &effects)
        startFetches(now: now, &effects)
        scheduleNext(now: now, &effects)
    }

    /// Merges the secrets that persistence found in the addresses of an older database.
    mutating func secretsMoved(_ moved: FeedSecrets, _ effects: inout [Effect]) {
        var next = secrets
        next.merge(moved)
        save(next, &effects)
        migrationSave = lastSave
    }

    mutating func forgetSecrets(of podcasts: [PodcastID], _ effects: inout [Effect]) {
        var next = secrets
        for id in podcasts { next.remove(id.text) }
        if next != secrets { save(next, &effects) }
    }

    /// Deletes secrets of podcasts that had been forgotten, or not stored yet, before a crash. If the database has no
    /// podcasts, nothing is deleted, because it may be a new one after a loss.
    mutating func forgetSecrets(ofAllBut known: Set<String>, _ effects: inout [Effect]) {
        guard !known.isEmpty else { return }
        let next = secrets.only(of: known)
        if next != secrets { save(next, &effects) }
    }

    /// Handles a sign-in: a fetch of a subscribed podcast with another user or password.
    mutating func signedIn(_ fetch: Fetch, _ id: PodcastID, _ outcome: FetchOutcome, _ effects: inout [Effect]) {
        fetches.remove(fetch.number)
        guard let known = library.current[id], known.podcast.subscribed else {
            return fail(fetch, .unsubscribedMeanwhile, &effects)
        }
        if case .failed(let failure, _) = outcome {
            for waiter in fetch.waiters {
                answer(waiter, failed(waiter.name, failure, isKept: waiter.keepsFailing), &effects)
            }
            return
        }
        if let address = WebAddress(known.podcast.url) { fetches.add(.podcast(id), address, nil) }
        for waiter in fetch.waiters {
            var line = result(.alreadyThere, waiter.name, known.podcast)
            line.passwordChanged = true
            line.warnings += Self.warnings(about: fetch)
            answer(waiter, line, &effects)
        }
    }
}
