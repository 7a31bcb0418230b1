package import PodcastModel

extension WireAlert {
    /// Creates an alert about a `subject` of the owner’s choice, an episode and a podcast, each an ID or empty.
    ///
    /// - Parameter name: The seed of the alert’s ID: the same name results in the same ID, even after a restart of the
    /// owner.
    package init(
        _ code: String, of owner: ServiceName, named name: String, title: String, message: String,
        severity: Severity = .warning, actions: [String] = ["dismiss"], subject: String = "", episode: String = "",
        podcast: String = "", at time: Timestamp
    ) {
        self.init()
        id = AlertID.derived(from: name).text
        self.code = code
        self.owner = owner.text
        self.title = title
        self.message = message
        self.severity = severity
        self.actions = actions
        self.subject = subject
        self.episode = episode
        self.podcast = podcast
        raisedAt = time.milliseconds
    }
}

extension WireAnswerAlert {
    /// Whether this answer to an alert takes effect; false if it repeats `winner`, the first answer. If both `winner` and
    /// `alert` are nil, the alert doesn’t exist.
    ///
    /// - Throws: `alreadyAnswered`, `notFound`, or `invalidArgument` for an answer that the alert doesn’t offer.
    package func isFirst(after winner: String?, to alert: WireAlert?) throws(Failure) -> Bool {
        if let winner {
            guard winner == action else {
                throw Failure(.alreadyAnswered, "The alert has been answered with “\(winner)”.")
            }
            return false
        }
        guard let alert else { throw Failure(.notFound, "Alert \(self.alert) no longer exists.") }
        guard alert.actions.contains(action) else {
            let actions = alert.actions.joined(separator: ", ")
            throw Failure(.invalidArgument, "“\(action)” isn’t an answer to this alert; its answers are \(actions).")
        }
        return true
    }

    /// The reply to an answer; `changed` is true if this request ended the alert.
    package func answered(changed: Bool) -> WireAlertAnswered {
        var answered = WireAlertAnswered()
        answered.alert = alert
        answered.action = action
        answered.changed = changed
        return answered
    }
}
