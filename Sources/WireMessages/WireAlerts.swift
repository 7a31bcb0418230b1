package import PodcastModel

extension WireAlert {
    /// An alert of an owner.
    ///
    /// - Parameters:
    ///   - name: what its ID is derived from: the same name gives the same alert, also in another life of the owner.
    ///   - subject: what it is about, in its owner's words.
    ///   - episode: the ID of the episode that it is about, or empty.
    ///   - podcast: the ID of the podcast that it is about, or empty.
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
    /// Judges the answer: the first one to an alert wins.
    ///
    /// - Parameters:
    ///   - winner: the answer that has won before, if the alert has been answered.
    ///   - alert: the alert, while it waits for an answer.
    /// - Returns: whether it is to be carried out; false: it is the one that has won.
    /// - Throws: `alreadyAnswered` with another one; `notFound`; `invalidArgument` for an answer that it does not take.
    package func isFirst(after winner: String?, to alert: WireAlert?) throws(Failure) -> Bool {
        if let winner {
            guard winner == action else {
                throw Failure(.alreadyAnswered, "The alert has been answered with “\(winner)”.")
            }
            return false
        }
        guard let alert else {
            throw Failure(.notFound, "Alert \(self.alert) no longer exists.")
        }
        guard alert.actions.contains(action) else {
            let actions = alert.actions.joined(separator: ", ")
            throw Failure(.invalidArgument, "“\(action)” isn’t an answer to this alert; its answers are \(actions).")
        }
        return true
    }

    /// The reply to it; `changed`: whether this request ended the alert.
    package func answered(changed: Bool) -> WireAlertAnswered {
        var answered = WireAlertAnswered()
        answered.alert = alert
        answered.action = action
        answered.changed = changed
        return answered
    }
}
