import FeedFetching
import OwnerKit
import PodcastModel
import ProcessKit
import WireMessages

extension FeedsMachine {
    static let secretsTimer = TimerName("save secrets")

    /// What the shell needs to fetch a podcast’s feed: what is known of it, and what was given with this command.
    func credentials(of fetch: Fetch, _ podcast: PodcastID?) -> [WebOrigin: WebCredentials] {
        var credentials = podcast.map { secrets.credentials(of: $0.text) } ?? [:]
        for origin in Self.origins(of: fetch) { credentials[origin] = fetch.credentials }
        return credentials
    }

    /// The servers that what was given with a command is for: that of its address and, where a person typed http, the same
    /// one with encryption, to which such an address usually leads.
    private static func origins(of fetch: Fetch) -> [WebOrigin] {
        guard fetch.credentials != nil, let origin = fetch.address.origin else { return [] }
        return [origin, origin.encrypted].compactMap(\.self)
    }

    /// What whoever gave a user and password must know.
    static func warnings(about fetch: Fetch) -> [String] {
        guard fetch.credentials != nil else { return [] }
        return [FeedWarning.unencryptedPassword(to: fetch.address)].compactMap { $0?.description }
    }

    /// The secrets as they are once a fetch counts; nil if they are on the disk already.
    ///
    /// They are written before anything that needs them is committed: a crash between the two leaves a password too many.
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

    /// The podcast whose secrets a fetch changes; nil: it changes none.
    private func podcast(of fetch: Fetch, _ outcome: FetchOutcome) -> PodcastID? {
        if case .failed = outcome, !fetch.waiters.contains(where: \.keepsFailing) { return nil }
        switch fetch.key {
        case .check: return nil
        // Of one that was forgotten meanwhile nothing is kept.
        case .podcast(let id), .signIn(let id, _): return podcasts.current[id] == nil ? nil : id
        case .new:
            guard case .feed(let feed) = outcome else {
                guard !isSubscribed(fetch.address) else { return nil }
                return podcast(at: fetch.address)?.0 ?? .feed(at: fetch.address)
            }
            return podcast(at: feed.address)?.0 ?? feed.podcast
        }
    }

    /// Has the secrets written, as the save `lastSave`.
    mutating func save(_ next: FeedSecrets) -> Effect {
        secrets = next
        secretsAreUnsaved = true
        lastSave += 1
        return .perform(.saveSecrets(lastSave, next))
    }

    /// The secrets are on the disk, or can’t be written.
    mutating func secretsSaved(_ number: UInt64, _ failure: Failure?, now: Moment) -> [Effect] {
        var effects: [Effect] = []
        if let failure {
            secretsAreUnsaved = true
            effects = [
                .log(.error, "the passwords can’t be saved: \(failure.message)"),
                .timer(Self.secretsTimer, at: now.monotonic.advanced(by: Self.savingRetry.wait())),
            ]
        } else {
            // An older save lacks what is in a later one, which has its own outcome.
            if number == lastSave {
                secretsAreUnsaved = false
                effects.append(.timer(Self.secretsTimer, at: nil))
            }
            if let first = takeoverSave, number >= first {
                takeoverSave = nil
                effects.append(.perform(.dropMovedSecrets))
            }
        }
        guard let (waiting, outcome) = parked.removeValue(forKey: number), let fetch = fetches[waiting] else {
            return effects
        }
        return effects + conclude(fetch, failure.map { .failed($0, retryAfter: nil) } ?? outcome, now: now)
            + startFetches(now: now) + scheduleNext(now: now)
    }

    /// What persistence found in the addresses of an older database.
    mutating func secretsMoved(_ moved: FeedSecrets) -> [Effect] {
        var next = secrets
        next.merge(moved)
        let effect = save(next)
        takeoverSave = lastSave
        return [effect]
    }

    /// A podcast is forgotten, and so are its user and password.
    mutating func forgetSecrets(of podcasts: [PodcastID]) -> [Effect] {
        var next = secrets
        for id in podcasts { next.remove(id.text) }
        return next == secrets ? [] : [save(next)]
    }

    /// A crash may have left those of a podcast that was forgotten, or not stored yet. A database without any podcast says
    /// nothing of that kind: it may be a new one in the place of another that was lost.
    mutating func forgetSecrets(ofAllBut known: [String]) -> [Effect] {
        guard !known.isEmpty else { return [] }
        let next = secrets.only(of: Set(known))
        return next == secrets ? [] : [save(next)]
    }

    /// A podcast that is subscribed to was read with another user or password.
    mutating func signedIn(_ fetch: Fetch, _ id: PodcastID, _ outcome: FetchOutcome, now: Moment) -> [Effect] {
        fetches.remove(fetch.number)
        guard let known = podcasts.current[id], known.podcast.subscribed else {
            return fail(fetch, Failure(.notFound, "The podcast was unsubscribed in the meantime."))
        }
        if case .failed(let failure, _) = outcome {
            return fetch.waiters.flatMap { waiter in
                var line = failed(waiter.name, failure)
                line.kept = waiter.keepsFailing
                return answer(waiter, line)
            }
        }
        if let address = WebAddress(known.podcast.url) { fetches.add(.podcast(id), address, nil) }
        return fetch.waiters.flatMap { waiter in
            var line = result(.alreadyThere, waiter.name, known.podcast)
            line.passwordChanged = true
            line.warnings += Self.warnings(about: fetch)
            return answer(waiter, line)
        }
    }
}

extension OwnerAlerts {
    /// Raises the alert that the file of passwords can’t be read.
    mutating func raiseDamage(_ message: String, now: Timestamp) -> OwnerChange {
        var alert = WireAlert()
        alert.id = AlertID.derived(from: "secretsDamaged/\(now.milliseconds)").text
        alert.code = "secretsDamaged"
        alert.title = "The passwords of podcasts were lost"
        alert.message = message
        alert.severity = .error
        alert.actions = ["dismiss"]
        alert.raisedAt = now.milliseconds
        alert.owner = ServiceName.feeds.text
        return raise(alert)
    }
}
